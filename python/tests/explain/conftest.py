from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

CHROMIUM = shutil.which("chromium")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium to open pages in: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Tabs:
    """Opens pages, and keeps what goes wrong in them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.errors: list[str] = []

    def open(
        self,
        url: str = "about:blank",
        width: int = 1280,
        colours: Literal["light", "dark"] = "light",
    ) -> Page:
        viewport = {"width": width, "height": 800}
        page = self._browser.new_page(viewport=viewport, color_scheme=colours)  # type: ignore[arg-type]
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on(
            "console",
            lambda said: self.errors.append(said.text) if said.type == "error" else None,
        )
        page.goto(url)
        return page

    def _failed(self, request: Request) -> None:
        # The browser aborts what still loads when it leaves a page.
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"{request.url}: {request.failure}")

    def close(self) -> None:
        for context in self._browser.contexts:
            for page in context.pages:
                # Its errors come until then.
                page.wait_for_load_state()
            context.close()


@pytest.fixture
def tabs(chromium: Browser) -> Iterator[Tabs]:
    """Pages of a browser. The test fails for errors on their consoles."""
    opened = Tabs(chromium)
    yield opened
    opened.close()
    assert opened.errors == []

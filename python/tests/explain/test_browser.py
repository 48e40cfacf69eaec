"""The page of `apportion explain` in a browser: clicked through, small, dark, by keyboard."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, expect

import apportion
from apportion import eventlog
from apportion.decision import decision_from_json
from apportion.logs.advise import render
from apportion.logs.advise.advice import advise, collected
from apportion.logs.eventlog import Application, LoggedDecision, LoggedShuffle, Query
from apportion.logs.explanation.explained import Explained
from apportion.logs.explanation.views.view import view

from . import streams
from .conftest import Tabs
from .plans import plan
from .test_render import DECIDED, stage

CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")
PICTURED = Path(__file__).parents[3] / "docs/pictures/skewed-join.zstd"
MOST_SECONDS = 2.0
LONG_JOIN = """
    BroadcastNestedLoopJoinOfALongName
      ShuffleQueryStage: 1000
        Exchange
          Scan parquet a_database_of_a_long_name.and_a_table_of_a_name_that_is_still_longer
      ShuffleQueryStage: 1001
        Exchange
          Scan parquet db.items
"""
# The boxes of a graph with text that crosses their right or lower edge.
OVERFLOWING = """
    [...document.querySelectorAll(".graph a")].filter((box) => {
      const outer = box.querySelector("rect").getBBox();
      return [...box.querySelectorAll("text")].some((text) => {
        const inner = text.getBBox();
        return inner.x + inner.width > outer.x + outer.width ||
          inner.y + inner.height > outer.y + outer.height;
      });
    }).map((box) => box.textContent)
"""


def query(
    number: int, description: str, stages: int, subpartitions: int = 4, tasks: int = 2
) -> Query:
    """A query of exchanges one after the other, each of which was decided about."""
    width = subpartitions // tasks
    ranges = [{"start": task * width, "end": (task + 1) * width} for task in range(tasks)]
    text = "Scan parquet a_database_of_a_long_name.and_a_table_of_a_name_that_is_still_longer"
    for place in range(stages):
        below = "\n".join(f"      {line}" for line in text.splitlines())
        text = f"HashAggregate\n  ShuffleQueryStage: {place}\n    Exchange\n{below}"
    made = Query(number, description, submitted=0, completed=1500, plan=plan(text))
    made.stages = [stage(7, 1, [0, 5, 25])]
    for place in range(stages):
        decision = decision_from_json({**DECIDED, "stages": [place], "ranges": ranges})
        sizes = [1024 + place * part for part in range(subpartitions)]
        made.decisions.append(LoggedDecision(decision, [LoggedShuffle(sizes)]))
    return made


def written(directory: Path, *queries: Query) -> str:
    """The address of a page."""
    views = [view(Application(), each) for each in queries]
    file = directory / "page.html"
    file.write_text(Explained("nightly", views, ["a line that is not an event"]).html(), "utf-8")
    return file.as_uri()


@pytest.fixture
def address(tmp_path: Path) -> str:
    """Of a page of two queries, one with a long text."""
    long = f"SELECT {', '.join(f'column_{n}' for n in range(40))}\nFROM {'a' * 200}"
    return written(tmp_path, query(3, "SELECT daily", 2), query(4, long, 2))


def test_links_lead_from_a_query_to_a_stage_to_its_operators(tabs: Tabs, address: str) -> None:
    page = tabs.open(address)
    page.get_by_role("link", name="Query 3: SELECT daily").click()
    expect(page.locator("h2#q3")).to_be_in_viewport()
    scan = page.locator("details#q3-query-stage-0")
    expect(scan).not_to_have_attribute("open", "")
    page.get_by_role("group", name="Stages of query 3").locator(".wide").get_by_label(
        "query stage 0"
    ).click()
    expect(scan).to_have_attribute("open", "")
    expect(scan).to_be_in_viewport()
    expect(scan.get_by_role("listitem").filter(has_text="Scan parquet").first).to_be_visible()
    expect(scan.locator("summary").first).to_be_focused()
    page.go_back()
    assert page.url.endswith("#q3")


def test_the_numbers_of_a_decision_can_be_opened(tabs: Tabs, address: str) -> None:
    result = tabs.open(f"{address}#q3-stage-7").locator("details#q3-stage-7")
    set_by = result.get_by_role("row", name="parallelism set by hint on the query block, line 2")
    expect(set_by).not_to_be_visible()
    result.get_by_text("Numbers and settings").click()
    expect(set_by).to_be_visible()
    expect(result.get_by_role("img")).to_have_accessible_name(
        re.compile("4 shuffle partitions, .*")
    )


def test_the_page_works_by_keyboard(tabs: Tabs, address: str) -> None:
    page = tabs.open(address)

    def focused() -> str:
        return str(page.evaluate("document.activeElement.getAttribute('href') || ''"))

    reached = []
    while "#q4-query-stage-0" not in reached:
        page.keyboard.press("Tab")
        reached.append(focused())
        assert len(reached) < 50, reached
    # First the queries, then the stages of each.
    links = [each for each in reached if each]
    assert links[:4] == ["#q3", "#q4", "#q3-query-stage-0", "#q3-query-stage-1"]
    assert links[4] == "#q3-stage-7"
    page.keyboard.press("Enter")
    scan = page.locator("details#q4-query-stage-0")
    expect(scan).to_have_attribute("open", "")
    expect(scan.locator("summary").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(scan).not_to_have_attribute("open", "")


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_the_page_has_readable_contrast_and_fits_the_screen(
    tabs: Tabs, address: str, width: int, colours: Literal["light", "dark"]
) -> None:
    page = tabs.open(f"{address}#q4-stage-7", width, colours)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate(CONTRAST) == []
    # Wide graphs scroll by themselves.
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert (
        page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    ) == (colours == "light")


@pytest.mark.parametrize(("width", "colours"), [(400, "light"), (1280, "dark")])
def test_streams_have_readable_contrast_and_fit_the_screen(
    tabs: Tabs, tmp_path: Path, width: int, colours: Literal["light", "dark"]
) -> None:
    file = tmp_path / "page.html"
    apportion.explain(streams.written(tmp_path, streams.peak())).save(file)
    page = tabs.open(file.as_uri(), width, colours)
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    expect(page.get_by_text("paused 8.2 s").last).to_be_attached()


def test_the_slowest_stage_is_in_sight_on_a_narrow_screen(tabs: Tabs, tmp_path: Path) -> None:
    made = query(3, "SELECT daily", 8)
    assert made.plan
    result = next(iter(made.plan.metrics.values()))
    made.stages = [stage(7, result, [0, 5, 25])]
    page = tabs.open(written(tmp_path, made), 400)
    expect(page.locator(".graph .narrow .slowest rect")).to_be_in_viewport(ratio=1)
    expect(page.locator(".graph .wide .slowest")).not_to_be_visible()
    expect(page.locator(".answer")).to_be_in_viewport()


def test_a_long_list_of_queries_leaves_room_for_the_slowest_one(tabs: Tabs, tmp_path: Path) -> None:
    page = tabs.open(written(tmp_path, *(query(n, f"query {n}", 1) for n in range(30))))
    expect(page.locator(".graph").first).to_be_in_viewport()
    page.get_by_text("25 faster queries").click()
    page.get_by_role("link", name="Query 29: query 29").click()
    expect(page.locator("h2#q29")).to_be_in_viewport()


def test_a_long_text_leaves_room_for_the_stages(tabs: Tabs, tmp_path: Path) -> None:
    page = tabs.open(written(tmp_path, query(1, "SELECT a,\n" + "  b,\n" * 100 + "  c FROM t", 1)))
    expect(page.locator(".graph .wide .slowest")).to_be_in_viewport()
    page.get_by_text("Description", exact=True).click()
    expect(page.locator("pre").first).to_be_visible()


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_advice_has_readable_contrast_and_fits_the_screen(
    tabs: Tabs, tmp_path: Path, width: int, colours: Literal["light", "dark"]
) -> None:
    application = eventlog.read(PICTURED)
    names = ["nightly", "a_job_with_a_name_of_more_than_forty_letters_without_a_space"]
    advice = [dataclasses.replace(advise(application, "a.log"), name=name) for name in names]
    file = tmp_path / "advice.html"
    file.write_text(render.html(collected(advice), 20), "utf-8")
    page = tabs.open(file.as_uri(), width, colours)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("millis", [(50, 200, 750), (300, 10, 690)])
@pytest.mark.parametrize(("width", "kind"), [(1400, "wide"), (420, "narrow")])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_coloured_boxes_have_readable_contrast_and_hold_their_text(
    tabs: Tabs,
    tmp_path: Path,
    millis: tuple[int, ...],
    width: int,
    kind: str,
    colours: Literal["light", "dark"],
) -> None:
    made = Query(3, "SELECT daily", submitted=0, completed=1500, plan=plan(LONG_JOIN))
    for number, (metric, time) in enumerate(zip((1, 5, 9), millis, strict=True)):
        ran = stage(number, metric, [0], spilled_bytes=123 << 30)
        ran.run_millis[0], ran.failed_tasks = time, 12
        made.stages.append(ran)
    page = tabs.open(written(tmp_path, made), width, colours=colours)
    boxes = page.locator(f".graph .{kind} a")
    expect(boxes).to_have_count(3)
    expect(boxes.first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate(OVERFLOWING) == []


def test_a_picture_shows_all_text_in_the_light(tabs: Tabs, tmp_path: Path) -> None:
    file = tmp_path / "graph.svg"
    Explained("", [view(Application(), query(n, "SELECT daily", 3)) for n in (1, 2)], []).save(file)
    page = tabs.open(file.as_uri(), 1400, "dark")
    assert page.evaluate("document.querySelectorAll('g').length") == 8
    assert page.evaluate(OVERFLOWING.replace(".graph a", "g")) == []


@pytest.mark.parametrize(("width", "colours"), [(1400, "light"), (420, "dark")])
def test_a_range_of_the_timeline_is_zoomed_into(
    tabs: Tabs, tmp_path: Path, width: int, colours: Literal["light", "dark"]
) -> None:
    file = tmp_path / "page.html"
    apportion.explain(PICTURED).save(file)
    page = tabs.open(file.as_uri(), width, colours)
    figure = page.locator(".timeline")
    plot, reset = figure.get_by_role("slider"), figure.get_by_role("button", name="Show all")
    labels = figure.locator(".axis").inner_text()
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box
    left, middle = box["x"] + box["width"] / 4, box["y"] + box["height"] / 2
    page.mouse.move(left, middle)
    expect(
        figure.get_by_text(" s: stage 12 (scan of hot): 32 tasks, 0.0 s to 1.2 s")
    ).to_be_visible()
    expect(reset).not_to_be_visible()
    page.mouse.down()
    page.mouse.move(left + box["width"] / 4, middle)
    page.mouse.up()
    assert shown(plot) == [250, 250]
    expect(reset).to_be_visible()
    assert page.evaluate(CONTRAST) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    reset.click()
    assert shown(plot) == [0, 1000]
    assert figure.locator(".axis").inner_text() == labels


def shown(plot: Locator) -> list[int]:
    """The left end and the width of the range that a timeline shows, in thousandths of it."""
    left, _, width, _ = (plot.get_attribute("viewBox") or "").split()
    return [round(float(left)), round(float(width))]


def test_the_timeline_works_by_keyboard(tabs: Tabs, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    apportion.explain(PICTURED).save(file)
    page = tabs.open(file.as_uri())
    plot = page.get_by_role("slider")
    plot.focus()
    for key in ["End", "+", "+", "ArrowLeft"]:
        page.keyboard.press(key)
    assert shown(plot) == [750, 250]
    expect(plot).to_have_attribute("aria-valuetext", re.compile(r"stage 20 .*: 1 task, "))
    page.keyboard.press("-")
    assert shown(plot) == [500, 500]
    page.keyboard.press("Escape")
    assert shown(plot) == [0, 1000]


def test_all_sections_are_open_in_print(tabs: Tabs, address: str) -> None:
    page = tabs.open(address)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("details:not([open])")).to_have_count(0)


def test_a_query_of_300_stages_opens_quickly(tabs: Tabs, tmp_path: Path) -> None:
    address = written(tmp_path, query(1, "SELECT large", 300, subpartitions=256, tasks=16))
    seconds: list[float] = []
    # The machine may be busy: the best of some.
    while len(seconds) < 3 and min(seconds, default=MOST_SECONDS) >= MOST_SECONDS:
        page = tabs.open(address)
        loaded = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        seconds.append(loaded / 1000)
    expect(page.locator("details.stage")).to_have_count(301)
    assert min(seconds) < MOST_SECONDS


def test_links_in_a_notebook_stay_in_the_frame(tabs: Tabs) -> None:
    explained = Explained("nightly", [view(Application(), query(3, "SELECT daily", 2))], [])
    page = tabs.open()
    page.set_content(explained._repr_html_())
    frame = page.frame_locator("iframe[title=nightly]")
    frame.get_by_role("group", name="Stages of query 3").locator(".wide").get_by_label(
        "query stage 0"
    ).click()
    scan = frame.locator("details#q3-query-stage-0")
    expect(scan).to_have_attribute("open", "")
    expect(scan.get_by_role("listitem").filter(has_text="Scan parquet").first).to_be_visible()

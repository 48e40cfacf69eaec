"""The site: every page is in it, every link leads somewhere, and it is read without a network."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .pages import ROOT

DOCS = ROOT / "docs"
NAMES = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
README = (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built as `make docs` builds it."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (the extra docs)")
    # Python compiles the drawing program when it is imported.
    py_compile.compile(str(DOCS / "pictures" / "draw.py"), doraise=True)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    # It refuses pages that are in no menu, and links and anchors that lead nowhere.
    assert run.returncode == 0, run.stderr
    return folder


def test_every_page_of_the_site_exists(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")} - {"404.html"}
    assert built == {name.removesuffix(".md") + ".html" for name in NAMES}


def test_every_page_is_in_the_menu() -> None:
    menu = re.findall(
        r"^ +- .*?: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE
    )
    assert sorted(menu) == sorted(NAMES)


def test_the_site_loads_nothing_from_other_servers(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?((?:https?:)?//[^\"'\s>]*)"
        r"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preconnect|icon)[^>]*href=[\"']?(https?:[^\"'\s>]*)"
        r"|url\([\"']?(https?:[^)]*)"
    )
    files = [*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.svg")]
    found = [(file.name, loaded.findall(file.read_text("utf-8"))) for file in files]
    assert [(name, urls) for name, urls in found if urls] == []


def test_the_drawing_program_is_not_published(site: Path) -> None:
    assert list(site.rglob("*.py*")) == []


@pytest.mark.parametrize("target", re.findall(r"\]\(([^):]*)\)", README))
def test_links_of_the_readme_have_targets(target: str) -> None:
    file, _, anchor = target.partition("#")
    assert (ROOT / file).is_file()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", (ROOT / file).read_text("utf-8"), re.MULTILINE)
        assert anchor in [heading.lower().replace(" ", "-") for heading in headings]


# Pictures


@pytest.fixture(scope="module")
def draw() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw", DOCS / "pictures" / "draw.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pictures_match_the_drawing_program(draw: ModuleType) -> None:
    drawn = {name: picture() for name, picture in draw.PICTURES.items()}
    kept = {file.name: file.read_text("utf-8") for file in DOCS.glob("pictures/*.svg")}
    assert kept == drawn, "make generated draws them"


def test_every_picture_is_shown_with_a_description() -> None:
    text = "".join(page.read_text("utf-8") for page in DOCS.rglob("*.md"))
    shown = re.findall(r"!\[[^\]]{30,}\]\((?:\.\./)?pictures/([\w-]+\.\w+)\)", text)
    kept = [file.name for file in DOCS.glob("pictures/*.*") if file.suffix in (".svg", ".png")]
    assert sorted(shown) == sorted(kept)


# What pages list


def test_every_rule_that_the_extension_injects_is_explained() -> None:
    source = (ROOT / "jvm/src/main/scala/io/apportion/ApportionExtension.scala").read_text("utf-8")
    injected = re.findall(r"^(?=.*extensions\.inject).*?\b([A-Z]\w+)", source, re.MULTILINE)
    page = (DOCS / "contribute/architecture.md").read_text("utf-8")
    table = page.split("## What is put into Spark")[1].split("\n## ")[0]
    assert set(re.findall(r"^\|.*?\| `(\w+)` \|", table, re.MULTILINE)) == set(injected)


def test_every_check_of_the_doctor_is_explained() -> None:
    sources = (ROOT / "python/apportion").glob("**/*doctor*/**/*.py")
    code = "".join(path.read_text("utf-8") for path in sources)
    code += (ROOT / "python/apportion/cli/commands/doctor.py").read_text("utf-8")
    checks = set(re.findall(r"Finding\(\s*\"([^\"]+)\"", code))
    page = (DOCS / "troubleshooting.md").read_text("utf-8").split("\n## ")[1]
    assert set(re.findall(r"^\| ([A-Z][^|]*?) \|", page, re.MULTILINE)) == checks


def test_the_changelog_has_the_version_of_the_build() -> None:
    (version,) = re.findall(r'version := "(.*)"', (ROOT / "build.sbt").read_text("utf-8"))
    versions = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert versions[0] == version


def test_the_command_line_page_matches_the_help(tmp_path: Path) -> None:
    written = tmp_path / "command-line.md"
    app = ["apportion.cli", "utils", "docs", "--name", "apportion", "--title", "Command line"]
    command = [sys.executable, "-m", "typer", *app, "--output", str(written)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "COLUMNS": "80"})
    kept = (DOCS / "command-line.md").read_text("utf-8")
    assert kept == written.read_text("utf-8"), "make generated writes it"

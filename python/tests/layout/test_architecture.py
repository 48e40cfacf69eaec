"""What the page on the architecture says is in the code."""

from __future__ import annotations

import re
import runpy

from .test_imports import OPTIONAL, ROOT, SCALA, scala_edges

PAGE = (ROOT / "docs/contribute/architecture.md").read_text("utf-8")
CODE = {file: file.read_text("utf-8") for file in SCALA.rglob("*.scala")}


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def layer_of(package: str, rows: list[list[str]]) -> int | None:
    """Return the row of a package in the picture; None for a package that it leaves out."""
    if package == "io.apportion":
        return 0
    found = [
        (f".{package}.".rfind(f".{name}.") + len(name), len(name), row)
        for row, names in enumerate(rows)
        for name in names
        if f".{name}." in f".{package}."
    ]
    return max(found)[2] if found else None


def test_packages_import_only_packages_of_their_layer_and_below() -> None:
    rows = list(runpy.run_path(str(ROOT / "docs/pictures/draw.py"))["LAYERS"].values())
    placed = {package: layer_of(package, rows) for package in scala_edges()}
    assert {row for row in placed.values() if row is not None} == set(range(len(rows)))
    upward = [
        (package, other)
        for package, imported in scala_edges().items()
        for other in imported
        if (row := placed[package]) is not None
        and (below := placed[other]) is not None
        and below < row
    ]
    assert upward == []


def test_every_class_on_the_path_of_a_query_exists() -> None:
    names = re.findall(r"`(\w+)`", section("The path of a query"))
    assert len(names) == len(set(names)) <= 15
    assert [name for name in names if not any(file.stem == name for file in CODE)] == []


def test_the_files_to_read_first_exist() -> None:
    names = re.findall(r"`([\w/]+\.scala)`", section("Five files to read first"))
    assert len(names) == 5
    assert [name for name in names if not (SCALA / "scala/io/apportion" / name).exists()] == []


def test_the_packages_that_can_be_deleted_are_listed() -> None:
    listed = set(re.findall(r"`([a-z]+)`", section("Delete a package")))
    assert listed == {package.rpartition(".")[2] for package in OPTIONAL}

"""Every measured number of the README, the results page and its chart comes from a raw file.

The pages are compared with what the templates make of the raw files. In other pages, two forms of
claims are checked: a ratio with its interval, and a ratio that is followed by "times faster" or
"times slower". They must be on the results page, be a cell of a raw file, or be in a block of
output on the same page. Numbers in other forms, and numbers that are right by chance, are not
found.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Set
from pathlib import Path

import pytest

from measurements import raw, results

from .pages import PAGES

INTERVAL = re.compile(r"\d[\d.,]* \([\d.,]+ to [\d.,]+\)")
FASTER = re.compile(r"(\d+\.\d+) times (?:faster|slower)")
# Measured numbers of the README: decimal fractions, shares and times.
MEASURED = re.compile(r"\d+\.\d+(?= times)|\d[\d.]*(?= ?(?:%|ms|s)(?!\w))")
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
RAW_FILES = sorted(raw.FOLDER.glob("*.csv"))


def prose(text: str) -> str:
    """Return the text of a page in one line, without its blocks of code and output."""
    return " ".join(_FENCED.sub("", text).split())


def unsupported(page: str, known: str, cells: Set[str]) -> list[str]:
    """Return the claims of a page that no known text and no cell supports."""
    output = " ".join(match[0] for match in _FENCED.finditer(page))
    claims = [*INTERVAL.findall(prose(page)), *FASTER.findall(prose(page))]
    return [
        claim
        for claim in claims
        if claim not in cells
        and not re.search(rf"(?<![\d.]){re.escape(claim)}(?![\d.]*\d)", f"{known} {output}")
    ]


def cells() -> set[str]:
    """Return the cells of all raw files."""
    return {
        cell
        for file in RAW_FILES
        for row in csv.reader(file.read_text("utf-8").splitlines())
        for cell in row
        if INTERVAL.fullmatch(cell)
    }


def test_the_results_page_is_made_from_the_raw_files() -> None:
    assert results.PAGE.read_text("utf-8") == results.page(), "make results writes it"


def test_the_table_of_the_readme_is_made_from_the_raw_files() -> None:
    text = results.README.read_text("utf-8")
    assert results.BLOCK.search(text)
    assert text == results.readme(text), "make results writes it"


def test_the_text_of_the_readme_has_no_measured_number() -> None:
    text = results.BLOCK.sub("", results.README.read_text("utf-8"))
    # An interval of 95% is not measured.
    assert MEASURED.findall(prose(text).replace("95%", "")) == []


@pytest.mark.parametrize("template", ["results.md.jinja", "readme.md.jinja"])
def test_templates_have_no_measured_number(template: str) -> None:
    text = (results.TEMPLATES / template).read_text("utf-8")
    written = re.sub(r"{%.*?%}|{{.*?}}|95%", "", text, flags=re.DOTALL)
    # The limits of a file size near its target are chosen, not measured.
    assert MEASURED.findall(prose(written.replace("0.5 to 1.5 times", ""))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_measured_speeds_are_on_the_results_page_or_in_a_raw_file(page: Path) -> None:
    block = results.BLOCK.search(results.README.read_text("utf-8"))
    known = prose(results.PAGE.read_text("utf-8")) + (block[0] if block else "")
    assert unsupported(page.read_text("utf-8"), known, cells()) == []


@pytest.mark.parametrize("file", RAW_FILES, ids=lambda file: file.stem)
def test_a_raw_file_says_its_conditions_and_a_page_links_it(file: Path) -> None:
    raw.read(file.stem)
    links = [page.name for page in PAGES if f"measurements/{file.name}" in page.read_text("utf-8")]
    assert links


# The checks themselves


def test_a_claim_without_a_source_is_found() -> None:
    known = "1.43 (1.25 to 1.63) and 2.05"
    assert unsupported("It was 1.43 (1.25 to 1.63).", known, set()) == []
    assert unsupported("It was 1.43 (1.25 to 1.61).", known, set()) == ["1.43 (1.25 to 1.61)"]
    assert unsupported("2.05 times faster, 1.4 times\nslower", known, set()) == ["1.4"]
    assert unsupported("1.4 times faster\n\n```text\n1.4\n```\n", known, set()) == []
    assert unsupported("It was 1.1 (1 to 2).", known, {"1.1 (1 to 2)"}) == []

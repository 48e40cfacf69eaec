"""Every measured number of the README, the docs and their chart comes from a raw file.

The results page and the table of the README are compared with what the templates make of the raw
files. In other pages, each quantity must come from one of the sources that `known` names. Counts
below 1,000, and numbers that are right by chance, are not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from measurements import raw, results

from .limits import EXAMPLES, LIMITS, Limit
from .pages import PAGES, ROOT

RAW_FILES = sorted(raw.FOLDER.glob("*.csv"))
# The numbers of failed-experiments.md come from the commits that it describes, as the page says.
CHECKED = [page for page in PAGES if page.name not in (results.PAGE.name, "failed-experiments.md")]

_NUMBER = (
    r"(?<![\w.,-])(?:\d[\d,]*(?:\.\d+)?"
    r"|(?i:half|twice|two|three|four|five|six|seven|eight|nine|ten|twelve))"
)
_UNIT = (
    r"%|(?:[mµ]?s|seconds?|(?:milli|micro)seconds|min|minutes?|hours?|[KMGT]i?B|bytes|times|x|fold"
    r"|faster|slower|as (?:long|fast|slow))\b"
)
_UNITS = {"second": "s", "seconds": "s", "minute": "min", "minutes": "min"}
# Both numbers of "2.8 to 46.8 s" have the unit.
_QUANTITY = re.compile(rf"({_NUMBER})(?=(?: (?:to|and|or) {_NUMBER})?[ -]?({_UNIT}))")
_COUNT = re.compile(rf"(?<![\w.,])\d{{1,3}}(?:,\d{{3}})+(?![\w%]|,\d| (?:{_UNIT}))")
_INTERVAL = re.compile(r"\d[\d.,]* \([\d.,]+ to [\d.,]+\)")
_DECIMAL = re.compile(r"(?<![\w.,])\d[\d,]*\.\d+(?![\d.])")
# Inline code, comments, descriptions of pictures, and addresses.
_NO_TEXT = re.compile(r"`[^`]*`|<!--.*?-->|!\[[^\]]*\]|\]\([^)]*\)", re.DOTALL)
# Blocks of code, and of output that is compared with a command's. Other blocks count as text.
_TESTED = re.compile(
    r"^<!-- (?:output|file): .*? -->\n```.*?^```$|^( *)```(?!text$)\w+$.*?^\1```$",
    re.DOTALL | re.MULTILINE,
)


def quantities(text: str) -> set[str]:
    """Return the numbers with their units, the ratios with intervals, and the counts above 999."""
    line = " ".join(_NO_TEXT.sub(" ", text.replace("```", "")).split())
    with_unit = {f"{number} {_UNITS.get(unit, unit)}" for number, unit in _QUANTITY.findall(line)}
    return with_unit | set(_INTERVAL.findall(line)) | set(_COUNT.findall(line))


def known(name: str, page: str) -> set[str]:
    """Return the quantities that a page may state, and numbers that it may state with any unit.

    The quantities are those of the results page, the README's table, the settings, the page's own
    tested blocks, and `limits.py`. The numbers are the decimal fractions of the same pages and
    blocks, and the cells and rounded numbers of the raw files that the page links.
    """
    blocks = [match[0] for match in _TESTED.finditer(page)]
    table = results.BLOCK.findall(results.README.read_text("utf-8"))
    shown = "\n".join([results.PAGE.read_text("utf-8"), *table, *blocks])
    settings = (ROOT / "python/apportion/settings.json").read_text("utf-8")
    listed = {limit.quantity for limit in LIMITS if limit.page == name} | EXAMPLES.get(
        name, {}
    ).keys()
    return (
        quantities(shown) | quantities(settings) | listed | set(_DECIMAL.findall(shown))
        | set(_of_raw_files(re.findall(r"measurements/([\w.-]+)\.csv", page)))
    )  # fmt: skip


def unsupported(name: str, page: str) -> set[str]:
    """Return the quantities in the text of a page that are not known."""
    sources = known(name, page)
    return {
        quantity
        for quantity in quantities(_TESTED.sub("", page))
        if not {quantity, re.sub(r" \D+$", "", quantity)} & sources
    }


def _of_raw_files(raw_files: list[str]) -> Iterator[str]:
    for name in raw_files:
        for row in raw.read(name).rows:
            cells = " ".join(row.values())
            yield from quantities(cells)
            for number in re.findall(r"\d+(?:\.\d+)?", cells):
                yield from (f"{float(number):,.{digits}f}" for digits in range(3))


def test_the_results_page_is_made_from_the_raw_files() -> None:
    assert results.PAGE.read_text("utf-8") == results.page(), "make results writes it"


def test_the_table_of_the_readme_is_made_from_the_raw_files() -> None:
    text = results.README.read_text("utf-8")
    assert results.BLOCK.search(text)
    assert text == results.readme(text), "make results writes it"


def test_the_text_of_the_readme_has_no_measured_number() -> None:
    text = results.BLOCK.sub("", results.README.read_text("utf-8"))
    # The level of the intervals is chosen, not measured.
    assert quantities(_TESTED.sub("", text)) == {"95 %"}


@pytest.mark.parametrize("template", ["results.md.jinja", "readme.md.jinja"])
def test_templates_have_no_measured_number(template: str) -> None:
    text = (results.TEMPLATES / template).read_text("utf-8")
    written = quantities(re.sub(r"{%.*?%}|{{.*?}}", "", _TESTED.sub("", text), flags=re.DOTALL))
    # The level of the intervals, the limits of a file size near its target, and a measured case.
    assert written <= {"95 %", "0.5 times", "1.5 times", "100,000"}


@pytest.mark.parametrize("page", CHECKED, ids=lambda page: page.name)
def test_every_quantity_of_a_page_has_a_source(page: Path) -> None:
    assert unsupported(page.name, page.read_text("utf-8")) == set()


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: f"{limit.page}: {limit.code}")
def test_the_code_has_the_limit_that_a_page_states(limit: Limit) -> None:
    files = [*ROOT.glob(f"python/**/{limit.file}"), *ROOT.glob(f"jvm/src/main/**/{limit.file}")]
    assert len(files) == 1
    assert re.search(rf"{re.escape(limit.code)}(?![\d.])", files[0].read_text("utf-8"))


def test_the_pages_state_the_listed_limits_and_examples() -> None:
    listed = {(limit.page, limit.quantity) for limit in LIMITS}
    listed |= {(page, quantity) for page, each in EXAMPLES.items() for quantity in each}
    stated = {
        (page.name, quantity)
        for page in CHECKED
        for quantity in quantities(_TESTED.sub("", page.read_text("utf-8")))
    }
    assert listed - stated == set()


@pytest.mark.parametrize("file", RAW_FILES, ids=lambda file: file.stem)
def test_a_raw_file_says_its_conditions_and_a_page_links_it(file: Path) -> None:
    raw.read(file.stem)
    links = [page.name for page in PAGES if f"measurements/{file.name}" in page.read_text("utf-8")]
    assert links


# The checks themselves


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It took 3.14 s instead of\n2,718 ms.", {"3.14 s", "2,718 ms"}),
        ("It pauses for 2.8 to 46.8 seconds.", {"2.8 s", "46.8 s"}),
        ("It is 31.4 times faster, or takes half as long.", {"31.4 times", "half as long"}),
        ("| 31.4% | 3.14GB |", {"31.4 %", "3.14 GB"}),
        ("1.43 (1.25 to 1.61)", {"1.43 (1.25 to 1.61)"}),
        ("It grew tenfold, to 31,415 blocks.", {"ten fold", "31,415"}),
        ("8 tasks on Spark 4.2, with `64MB` and `took 3.14 s`", set()),
    ],
)
def test_quantities_are_found(text: str, found: set[str]) -> None:
    assert quantities(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "31.4 times faster",
        "1.43 (1.25 to 1.61)",
        "```text\n31.4 s\n```\n",
        "31.4 s, from [a file](measurements/spills.csv)",
        "31.4 s\n\n```bash\nsleep 3\n```\n",
    ],
)
def test_a_quantity_without_a_source_is_found(text: str) -> None:
    assert unsupported("page.md", text)


@pytest.mark.parametrize(
    "text",
    [
        "31.4 s\n\n<!-- output: apportion run a.sql -->\n```text\n31.4 s\n```\n",
        "237 MiB and 1.13 (1.02 to 1.24), from [a file](measurements/spills.csv)",
        "tasks of 1 MiB",
    ],
)
def test_a_quantity_with_a_source_is_not_found(text: str) -> None:
    assert unsupported("page.md", text) == set()

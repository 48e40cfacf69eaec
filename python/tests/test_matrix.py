"""`make test-matrix`, without the tests that it runs."""

from __future__ import annotations

import re
from pathlib import Path

import matrix
from apportion._spark.jars import SparkVersion
from matrix import Count, Result

ROOT = Path(__file__).resolve().parents[2]

REPORT = """
<testsuite>
  <testcase name="passes" />
  <testcase name="prints"><system-out>text</system-out></testcase>
  <testcase name="is skipped"><skipped /></testcase>
  <testcase name="fails"><failure /></testcase>
  <testcase name="breaks"><error /></testcase>
</testsuite>
"""


def result(minor: str, scala: str, scala_tests: Count | None, python_tests: Count | None) -> Result:
    return Result("a.jar", SparkVersion(minor, scala), scala_tests, python_tests)


def test_tests_that_are_skipped_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert matrix.counted_by_pytest(tmp_path / "report.xml") == Count(passed=2, of=4)
    printed = "[error] Failed: Total 10, Failed 2, Errors 1, Passed 7, Canceled 3"
    assert matrix.counted_by_sbt(printed) == Count(passed=7, of=10)


def test_a_run_without_tests_is_not_green() -> None:
    assert not matrix.counted_by_sbt("[error] Compilation failed").is_green
    assert not matrix.counted_by_pytest(Path("missing.xml")).is_green
    assert not result("4.2", "2.13", Count(0, 0), None).is_green
    assert not result("4.2", "2.13", Count(3, 3), Count(0, 0)).is_green
    assert result("4.2", "2.13", Count(3, 3), None).is_green


def test_the_table_has_a_row_for_each_result() -> None:
    assert matrix.row(result("4.2", "2.13", Count(7, 7), Count(4, 5)))[:-1] == (
        "4.2",
        "2.13",
        "17 or newer",
        "`a.jar`",
        "7",
        "**4 of 5**",
    )
    assert matrix.row(result("3.5", "2.13", Count(7, 7), None))[2:6] == (
        "8 or newer",
        "`a.jar`",
        "7",
        "not in pip",
    )
    assert matrix.row(result("4.3", "2.13", None, Count(5, 5)))[4:6] == ("not in Maven", "5")


def test_the_page_keeps_rows_of_versions_that_did_not_run() -> None:
    empty = "# Page\n\n<!-- versions: start -->\n\n\n\n<!-- versions: end -->\n\nThe rest.\n"
    first = matrix.page([result("4.2", "2.13", Count(7, 7), Count(4, 5))], empty)
    second = matrix.page([result("4.3", "2.13", None, Count(5, 5))], first)
    third = matrix.page([result("4.2", "2.13", Count(8, 8), Count(5, 5))], second)
    assert [cells[4:6] for cells in matrix.rows_in(third).values()] == [
        ("not in Maven", "5"),
        ("8", "5"),
    ]
    assert third.startswith("# Page\n")
    assert third.endswith("The rest.\n")


def test_projects_of_sbt() -> None:
    new, old, oldest = (
        SparkVersion("4.2", "2.13"),
        SparkVersion("3.5", "2.13"),
        SparkVersion("3.5", "2.12"),
    )
    names = [matrix.project(each, [new, old, oldest]) for each in (new, old, oldest)]
    assert names == ["spark42", "spark35_2_13", "spark35_2_12"]


def declared() -> list[tuple[str, str, str]]:
    """Version, Scala versions and oldest Java of each Spark, as the build has them."""
    builds = (ROOT / "project/SparkVersion.scala").read_text()
    found = re.findall(
        r'SparkVersion\("([\d.]+)", "[\d.]+", "[\d.]+", Seq\((.*?)\), (\d+),', builds
    )
    assert found
    return found


def test_the_oldest_java_is_what_jars_are_compiled_for() -> None:
    for minor, _, java in declared():
        assert SparkVersion(minor, "").oldest_java == int(java), minor


def test_the_page_has_every_version() -> None:
    for minor, scalas, java in declared():
        for scala in re.findall(r"\d\.\d+", scalas):
            row = f"| {minor} | {scala} | {java} or newer |"
            assert row in matrix.PAGE.read_text("utf-8")

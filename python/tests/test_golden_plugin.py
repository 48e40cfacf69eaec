"""The pytest plugin for SQL golden tests: scripts, rendering, pytest on a faked session."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from apportion.testing import golden
from apportion.testing.render import cell, row_lines, widths
from apportion.testing.run import ScriptRun, StatementError
from apportion.testing.script import Options, ScriptError, SparkRange, parse

pytest_plugins = ["pytester"]


# Scripts


def test_a_script_is_read_into_statements_with_their_settings_setups_and_options() -> None:
    script = parse(
        """\
-- Copyright of someone. A comment, like the next line.
-- SPDX-License-Identifier: Apache-2.0
-- set: spark.sql.shuffle.partitions = 16
-- digits: 12
-- setup
CREATE TEMPORARY VIEW t AS SELECT 1 AS k;

-- name: first
-- set: a.b = x = y
-- order: kept
SELECT 'a;b' -- a comment in it
FROM t;
-- setup
-- set: c =
CACHE TABLE t
-- name: second: with a colon
-- error: TABLE_OR_VIEW_NOT_FOUND
-- decisions: off
--- note: not a directive
SELECT * FROM u
""",
        "x.sql",
    )
    first, second = script.statements
    assert script.settings == {"spark.sql.shuffle.partitions": "16"}

    assert (first.name, first.line) == ("first", 8)
    assert first.sql == "SELECT 'a;b' -- a comment in it\nFROM t;"
    assert first.settings == {"a.b": "x = y"}
    assert first.options == Options(ordered=True, digits=12)
    assert [setup.sql for setup in first.setups] == ["CREATE TEMPORARY VIEW t AS SELECT 1 AS k;"]

    assert second.name == "second: with a colon"
    assert second.sql == "--- note: not a directive\nSELECT * FROM u"
    assert second.options == Options(error="TABLE_OR_VIEW_NOT_FOUND", decisions=False, digits=12)
    assert [setup.settings for setup in second.setups] == [{}, {"c": ""}]


def test_directives_can_follow_a_comment_of_several_lines() -> None:
    script = parse("-- name: a\n/* two\n   lines */\n-- order: kept\nSELECT 1\n", "x.sql")
    assert script.statements[0].options.ordered


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("-- name:\nSELECT 1", "x.sql:1: '-- name:' without a name"),
        ("-- name: a", "x.sql:1: statement 'a' has no SQL"),
        ("-- name: a\n-- only\n/* comments */ ;", "x.sql:1: statement 'a' has no SQL"),
        ("-- setup\n-- name: a\nSELECT 1", "x.sql:1: the setup has no SQL"),
        (
            "-- setup\nCACHE TABLE t;\nCACHE TABLE u;\n-- name: a\nSELECT 1",
            "x.sql:1: the setup has 2 statements: begin each with its own header",
        ),
        (
            "-- name: a\nSELECT 1; SELECT ';'; -- end",
            "x.sql:1: statement 'a' has 2 statements: begin each with its own header",
        ),
        ("\nSELECT 1", "x.sql:2: SQL above the first block: begin it with '-- name: ...'"),
        (
            "-- name: a\nSELECT 1\n-- name: a\nSELECT 2",
            "x.sql:3: statement 'a' has the same name as line 1",
        ),
        (
            "-- name: a\n-- ordr: kept\nSELECT 1",
            "x.sql:2: unknown directive 'ordr', did you mean 'order'? Allowed are name, setup, "
            "set, error, order, decisions, digits and spark (start an ordinary comment with '---')",
        ),
        (
            "-- name: a\n-- todo: think\nSELECT 1",
            "x.sql:2: unknown directive 'todo'. Allowed are name, setup, set, error, order, "
            "decisions, digits and spark (start an ordinary comment with '---')",
        ),
        (
            "-- name: a\n-- Set: x = 1\nSELECT 1",
            "x.sql:2: unknown directive 'Set', did you mean 'set'? Allowed are name, setup, set, "
            "error, order, decisions, digits and spark (start an ordinary comment with '---')",
        ),
        (
            "-- error: X\n-- name: a\nSELECT 1",
            "x.sql:1: 'error' is not allowed above the first block, only set, order, decisions "
            "and digits",
        ),
        (
            "-- setup\n-- order: kept\nSELECT 1",
            "x.sql:2: 'order' is not allowed in a setup, only set",
        ),
        ("-- setup: v\nSELECT 1", "x.sql:1: '-- setup' takes no value, not 'v'"),
        (
            "-- name: a\nSELECT 1\n-- set: x = 1",
            "x.sql:3: 'set' is below its SQL: move it above line 2",
        ),
        (
            "-- name: a\n-- set: x\nSELECT 1",
            "x.sql:2: 'set: x' must have the form 'KEY = VALUE'",
        ),
        (
            "-- name: a\n-- set x.y = 1\nSELECT 1",
            "x.sql:2: 'set' has no colon: write '-- set: x.y = 1' "
            "(start an ordinary comment with '---')",
        ),
        (
            "-- name: a\n-- order kept\nSELECT 1",
            "x.sql:2: 'order' has no colon: write '-- order: kept' "
            "(start an ordinary comment with '---')",
        ),
        (
            "-- name: a\n-- set: x = 1\n-- set: x = 2\nSELECT 1",
            "x.sql:3: x is set twice in this block",
        ),
        (
            "-- name: a\n-- order: by k\nSELECT 1",
            "x.sql:2: 'order: by k' is not allowed: write sorted or kept",
        ),
        (
            "-- decisions: never\n-- name: a\nSELECT 1",
            "x.sql:1: 'decisions: never' is not allowed: write on or off",
        ),
        (
            "-- name: a\n-- digits: 18\nSELECT 1",
            "x.sql:2: 'digits: 18' is not allowed: write 1 to 17",
        ),
        (
            "-- name: a\n-- order: kept\n-- order: kept\nSELECT 1",
            "x.sql:3: 'order' is given twice in this block",
        ),
        (
            "-- name: a\n-- spark: >= 4.0\n-- spark: < 4.2\nSELECT 1",
            "x.sql:3: 'spark' is given twice in this block",
        ),
        (
            "-- name: a\n-- error: X\n-- error: Y\nSELECT 1",
            "x.sql:3: 'error' is given twice in this block",
        ),
        (
            "-- name: a\n-- error:\nSELECT 1",
            "x.sql:2: 'error:' needs the expected condition or text",
        ),
        (
            "-- name: a\n-- spark: 4.1\nSELECT 1",
            "x.sql:2: 'spark: 4.1' must have the form '>= X.Y' or '< X.Y'",
        ),
    ],
)
def test_a_broken_script_raises_with_file_line_and_allowed_values(text: str, problem: str) -> None:
    with pytest.raises(ScriptError) as refused:
        parse(text, "x.sql")
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("versions", "of_spark_40"),
    [(">= 4.1", False), (">= 4.0", True), (">=3.5", True), ("< 4.1", True), ("< 4.0", False)],
)
def test_a_statement_can_be_limited_to_spark_versions(versions: str, of_spark_40: bool) -> None:
    script = parse(f"-- name: a\n-- spark: {versions}\nSELECT 1", "x.sql")
    found = script.statements[0].options.spark
    assert found is not None
    assert found.has("4.0.4") == of_spark_40
    assert not SparkRange("<", (4, 10)).has("4.10.0")


def test_all_problems_of_a_script_are_in_one_error() -> None:
    with pytest.raises(ScriptError) as refused:
        parse("-- name: a\n-- nme: b\n-- order: x\n-- name: c", "x.sql")
    lines = [line.split(" ")[0] for line in str(refused.value).splitlines()]
    assert lines == ["x.sql:1:", "x.sql:2:", "x.sql:3:", "x.sql:4:"]


# Rendering

_UTC_NOON = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.timezone.utc)


@pytest.mark.parametrize(
    ("value", "kind", "digits", "text"),
    [
        (None, t.StringType(), None, "NULL"),
        ("", t.StringType(), None, "''"),
        ("NULL", t.StringType(), None, "'NULL'"),
        ("it's \\n", t.StringType(), None, r"'it\'s \\n'"),
        (True, t.BooleanType(), None, "true"),
        (-7, t.LongType(), None, "-7"),
        (0.1 + 0.2, t.DoubleType(), None, "0.30000000000000004"),
        (0.1 + 0.2, t.DoubleType(), 15, "0.3"),
        (1234567.0, t.DoubleType(), 3, "1230000.0"),
        (float("nan"), t.DoubleType(), 3, "nan"),
        (float("-inf"), t.FloatType(), None, "-inf"),
        (-0.0, t.DoubleType(), None, "-0.0"),
        (0.10000000149011612, t.FloatType(), None, "0.1"),
        (16777216.0, t.FloatType(), None, "16777216.0"),
        (Decimal("1E+3"), t.DecimalType(10, 0), None, "1000"),
        (Decimal("1.50"), t.DecimalType(10, 2), None, "1.50"),
        (datetime.date(2024, 1, 2), t.DateType(), None, "2024-01-02"),
        (datetime.datetime(2024, 1, 2), t.TimestampNTZType(), None, "2024-01-02 00:00:00"),
        (
            _UTC_NOON.astimezone().replace(tzinfo=None),
            t.TimestampType(),
            None,
            "2024-07-01 12:00:00Z",
        ),
        (bytearray(b"\x00\xff"), t.BinaryType(), None, "X'00FF'"),
        ([1, None], t.ArrayType(t.IntegerType()), None, "[1, NULL]"),
        (
            {"b": 1.25, "a": None},
            t.MapType(t.StringType(), t.DoubleType()),
            2,
            "{'a': NULL, 'b': 1.2}",
        ),
        (
            t.Row(a=1, b="x"),
            t.StructType().add("a", t.IntegerType()).add("b", t.StringType()),
            None,
            "(a: 1, b: 'x')",
        ),
    ],
)
def test_different_values_have_different_texts(
    value: Any, kind: t.DataType, digits: int | None, text: str
) -> None:
    assert cell(value, kind, digits) == text


def test_rows_are_sorted_as_text_unless_their_order_matters() -> None:
    schema = t.StructType().add("k", t.IntegerType()).add("s", t.StringType())
    rows = [(2, "line\nbreak"), (1, None)]
    assert row_lines(rows, schema, ordered=False, digits=None) == ["1 | NULL", r"2 | 'line\nbreak'"]
    assert row_lines(rows, schema, ordered=True, digits=None) == [r"2 | 'line\nbreak'", "1 | NULL"]


def test_a_row_without_columns_is_no_blank_line() -> None:
    assert row_lines([(), ()], t.StructType([]), ordered=False, digits=None) == ["()", "()"]


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ([], ""),
        ([(0, 1)], "1x1"),
        ([(0, 2), (2, 4), (4, 6)], "3x2"),
        ([(0, 2), (2, 3), (3, 4), (4, 7)], "2+2x1+3"),
        ([(0, 4), (4, 5), (4, 5), (5, 8)], "0-4 4-5 4-5 5-8"),
    ],
)
def test_ranges_have_a_short_text(ranges: list[tuple[int, int]], text: str) -> None:
    assert widths(ranges) == text


# Golden files


def test_a_golden_file_reads_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "x.golden"
    entries = {"a b": ("-- schema: struct<k:int>", "1"), "c": ()}
    golden.write(path, entries)
    assert path.read_text() == "-- name: a b\n-- schema: struct<k:int>\n1\n\n-- name: c\n"
    assert golden.read(path) == entries
    golden.write(path, {})
    assert not path.exists()
    assert golden.read(path) == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<<<<<<< ours\n-- name: a\n", "x.golden:1: '<<<<<<< ours' is above the first"),
        ("-- name: a\n1\n-- name: a\n2\n", "x.golden:3: duplicate name 'a'"),
    ],
)
def test_a_golden_file_with_another_format_raises(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "x.golden").write_text(text)
    with pytest.raises(golden.GoldenError, match=problem):
        golden.read(tmp_path / "x.golden")


# Runs of pytest, on a session whose SQL is:
#   SELECT <n>    one row with n, and a decision for n tasks
#   HISTORY       what the session ran before, with the setting `x` that was in force
#   FAIL <text>   an error with that text
_CONFTEST = """
import dataclasses, datetime, itertools
import pytest
from pyspark.sql.types import LongType, Row, StringType, StructType
from apportion.decision import Decision


class Frame:
    def __init__(self, schema, rows):
        self.schema = schema
        self.collect = lambda: rows


class Session:
    version = "4.0.4"
    _jvm = None  # There is one: no Spark Connect client.

    def __init__(self):
        self.history, self.settings, self.decisions = [], {}, []
        self.conf = self.catalog = self
        self.queries = itertools.count()

    newSession = classmethod(lambda cls: cls())
    get = lambda self, key, default: self.settings.get(key, default)
    unset = lambda self, key: self.settings.pop(key)

    def set(self, key, value):
        if key == "bad":
            raise ValueError(f"{key} cannot be {value}")
        self.settings[key] = value

    def sql(self, text, args=None):
        if text == "SELECT * FROM apportion_decisions()":
            return Frame(None, self.decisions[-3:])
        command, _, argument = text.strip().partition(" ")
        if command == "FAIL":
            raise ValueError(argument)
        if command == "HISTORY":
            schema = StructType().add("statement", StringType()).add("x", StringType())
            return Frame(schema, self.history)
        self.history.append((text, self.settings.get("x")))
        values = {field.name: None for field in dataclasses.fields(Decision)}
        values |= dict(
            query=next(self.queries), group=0, decided_at=datetime.datetime.now(),
            operator="HashAggregate", stages=[], shuffles=[], input_bytes=0, broadcast_bytes=0,
            clamps=[], subpartitions=8, parallelism=int(argument), tasks=int(argument),
            layout="even", largest_task_bytes=0, mean_task_bytes=0, sources={}, kind="formula",
            reason="",
            ranges=[Row(start=i, end=i + 1) for i in range(int(argument))],
        )
        self.decisions.append(Row(**values))
        return Frame(StructType().add("n", LongType()), [(int(argument),)])


@pytest.fixture(scope="session")
def apportion_spark():
    return Session()
"""


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project whose `sql_tests` folder holds golden tests, and nothing else."""
    # Hypothesis would be imported again at the end of each inner run, which takes a second.
    pytester.makeini(
        "[pytest]\napportion_sql_tests = sql_tests\naddopts = -p no:hypothesispytest\n"
    )
    pytester.makeconftest(_CONFTEST)
    pytester.mkdir("sql_tests")
    return pytester


def _write(project: pytest.Pytester, name: str, text: str) -> Path:
    path = project.path / "sql_tests" / name
    path.write_text(text)
    return path


def test_a_statement_for_other_versions_is_skipped(project: pytest.Pytester) -> None:
    _write(project, "x.sql", "-- name: a\n-- spark: < 4.1\nSELECT 1\n")
    project.runpytest("--apportion-update-golden").assert_outcomes(passed=1)
    _write(project, "x.sql", "-- name: a\n-- spark: >= 4.1\nFAIL never run\n")
    project.runpytest().assert_outcomes(skipped=1)


@pytest.mark.parametrize(
    "block", ["-- setup\nFAIL no table\n-- name: a\nSELECT 1\n", "-- name: a\nFAIL no table\n"]
)
def test_an_error_of_spark_is_printed_once(project: pytest.Pytester, block: str) -> None:
    _write(project, "x.sql", block)
    result = project.runpytest("-rN")
    result.assert_outcomes(failed=1)
    assert result.stdout.str().count("no table") == 1
    result.stdout.no_fnmatch_line("*another exception*")


def test_update_golden_writes_a_file_that_the_next_run_accepts(project: pytest.Pytester) -> None:
    _write(project, "x.sql", "-- name: two\nSELECT 2\n-- name: one\nSELECT 1\n")
    updated = project.runpytest("--apportion-update-golden")
    updated.assert_outcomes(passed=2)
    updated.stdout.fnmatch_lines(
        ["sql_tests/x.golden: added 'two'", "sql_tests/x.golden: added 'one'"]
    )
    assert (project.path / "sql_tests/x.golden").read_text() == (
        "-- name: two\n"
        "-- schema: struct<n:bigint>\n"
        "2\n"
        "-- rows: 1\n"
        "-- decision: HashAggregate: N=8 P=2 tasks=2 even 2x1 (formula)\n"
        "\n"
        "-- name: one\n"
        "-- schema: struct<n:bigint>\n"
        "1\n"
        "-- rows: 1\n"
        "-- decision: HashAggregate: N=8 P=1 tasks=1 even 1x1 (formula)\n"
    )
    project.runpytest().assert_outcomes(passed=2)
    project.runpytest("--apportion-update-golden").stdout.fnmatch_lines(["nothing changed"])


def test_a_missing_golden_fails_with_the_command_to_run(project: pytest.Pytester) -> None:
    _write(project, "x.sql", "-- name: a\nSELECT 1\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["sql_tests/x.golden has no entry for 'a': run pytest --apportion-update-golden"]
    )


def test_a_mismatch_fails_with_a_diff_and_update_golden_reports_changes(
    project: pytest.Pytester,
) -> None:
    script = _write(project, "x.sql", "-- name: a\nSELECT 1\n-- name: b\nSELECT 5\n")
    project.runpytest("--apportion-update-golden")
    script.write_text("-- name: a\nSELECT 3\n-- name: b\nSELECT 5\n")
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "--- sql_tests/x.golden",
            "+++ now",
            " -- schema: struct<n:bigint>",
            "-1",
            "+3",
            " -- rows: 1",
            "--- decision: HashAggregate: N=8 P=1 tasks=1 even 1x1 (formula)",
            "+-- decision: HashAggregate: N=8 P=3 tasks=3 even 3x1 (formula)",
            "*run pytest --apportion-update-golden",
        ]
    )
    updated = project.runpytest("--apportion-update-golden")
    updated.stdout.fnmatch_lines(["sql_tests/x.golden: changed 'a'"])
    updated.stdout.no_fnmatch_line("*changed 'b'")


def test_the_golden_of_a_removed_statement_fails_until_it_is_removed(
    project: pytest.Pytester,
) -> None:
    script = _write(project, "x.sql", "-- name: a\nSELECT 1\n-- name: b\nSELECT 2\n")
    project.runpytest("--apportion-update-golden")
    script.write_text("-- name: b\nSELECT 2\n")
    result = project.runpytest()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["sql_tests/x.golden has entries without a statement: a.*"])
    updated = project.runpytest("--apportion-update-golden")
    updated.stdout.fnmatch_lines(["sql_tests/x.golden: removed 'a'"])
    project.runpytest().assert_outcomes(passed=1)


def test_a_golden_without_its_sql_file_fails_until_it_is_removed(project: pytest.Pytester) -> None:
    orphan = _write(project, "x.golden", "-- name: a\n1\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["sql_tests/x.golden has no .sql file.*"])
    project.runpytest("--apportion-update-golden").assert_outcomes(passed=1)
    assert not orphan.exists()


def test_an_update_of_one_statement_keeps_the_goldens_of_the_others(
    project: pytest.Pytester,
) -> None:
    script = _write(project, "x.sql", "-- name: a\nSELECT 1\n-- name: b\nSELECT 2\n")
    project.runpytest("--apportion-update-golden")
    script.write_text("-- name: b\nSELECT 4\n-- name: a\nSELECT 3\n")
    project.runpytest("--apportion-update-golden", "sql_tests/x.sql::b").assert_outcomes(passed=1)
    project.runpytest().assert_outcomes(passed=1, failed=1)


def test_setups_run_once_and_nothing_leaks_between_files(
    project: pytest.Pytester,
) -> None:
    text = """\
-- set: x = file
-- setup
SELECT 1
-- name: a
-- set: x = statement
SELECT 2
-- setup
-- set: x = setup
SELECT 3
-- name: b
SELECT 4
-- name: history
-- order: kept
-- decisions: off
HISTORY
"""
    _write(project, "x.sql", text)
    _write(project, "y.sql", text.replace("-- set: x = file\n", ""))
    project.runpytest("--apportion-update-golden").assert_outcomes(passed=6)

    def history(name: str) -> tuple[str, ...]:
        return golden.read(project.path / "sql_tests" / name)["history"][1:-1]

    assert history("x.golden") == (
        "'SELECT 1' | 'file'",
        "'SELECT 2' | 'statement'",
        "'SELECT 3' | 'setup'",
        "'SELECT 4' | 'file'",
    )
    assert history("y.golden") == (
        "'SELECT 1' | NULL",
        "'SELECT 2' | 'statement'",
        "'SELECT 3' | 'setup'",
        "'SELECT 4' | NULL",
    )


def test_a_statement_runs_alone_with_the_setups_above_it(project: pytest.Pytester) -> None:
    _write(
        project,
        "x.sql",
        "-- setup\nSELECT 1\n-- name: a\nSELECT 2\n-- setup\nSELECT 3\n-- name: b\nHISTORY\n",
    )
    project.runpytest("--apportion-update-golden", "sql_tests/x.sql::b").assert_outcomes(passed=1)
    entry = golden.read(project.path / "sql_tests/x.golden")["b"]
    assert entry[1:3] == ("'SELECT 1' | NULL", "'SELECT 3' | NULL")


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("-- name: a\n-- error: no such thing\nFAIL there is no such thing here", None),
        ("-- name: a\n-- set: bad = 1\n-- error: cannot be 1\nSELECT 1", None),
        (
            "-- name: a\n-- error: no such thing\nFAIL otherwise",
            "sql_tests/x.sql:1: statement 'a' failed, but not with 'no such thing': otherwise",
        ),
        (
            "-- name: a\n-- error: no such thing\nSELECT 1",
            "sql_tests/x.sql:1: statement 'a' did not fail, expected 'no such thing'",
        ),
        ("-- name: a\nFAIL badly", "sql_tests/x.sql:1: statement 'a' failed: badly"),
        (
            "-- name: a\n-- set: bad = 1\nSELECT 1",
            "sql_tests/x.sql:1: statement 'a' failed: bad cannot be 1",
        ),
        (
            "-- setup\nFAIL early\n-- name: a\n-- error: early\nSELECT 1",
            "sql_tests/x.sql:1: setup failed: early",
        ),
        (
            "-- set: bad = 1\n-- name: a\nSELECT 1",
            "sql_tests/x.sql: 'set: bad = 1' failed: bad cannot be 1",
        ),
    ],
)
def test_only_the_expected_error_passes(
    project: pytest.Pytester, text: str, outcome: str | None
) -> None:
    _write(project, "x.sql", text)
    result = project.runpytest("--apportion-update-golden")
    assert not (project.path / "sql_tests/x.golden").exists()
    if outcome is None:
        result.assert_outcomes(passed=1)
    else:
        result.assert_outcomes(failed=1)
        assert outcome in result.stdout.lines


def test_a_broken_script_or_golden_is_a_collection_error(project: pytest.Pytester) -> None:
    _write(project, "x.sql", "-- name: a\n-- ordr: kept\nSELECT 1\n")
    _write(project, "y.sql", "-- name: a\nSELECT 1\n")
    _write(project, "y.golden", "=======\n")
    (project.path / "sql_tests/w.golden").write_bytes(b"\xff")
    _write(project, "w.sql", "-- name: a\nSELECT 1\n")
    (project.path / "sql_tests/z.sql").write_bytes(b"-- name: \xff\n")
    result = project.runpytest()
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(
        [
            "sql_tests/w.golden: 'utf-8' codec can't decode*",
            "sql_tests/x.sql:2: unknown directive 'ordr', did you mean 'order'? *",
            "*y.golden:1: '=======' is above the first '-- name: ...'",
            "sql_tests/z.sql: 'utf-8' codec can't decode*",
        ]
    )


@pytest.mark.parametrize("character", ["\u2028", "\u0085", "\f"])
def test_a_string_keeps_characters_that_end_lines_elsewhere(character: str) -> None:
    sql = f"SELECT 'a{character}b'"
    assert parse(f"-- name: one\r\n{sql}\r\n", "x.sql").statements[0].sql == sql


def test_a_script_can_begin_with_a_byte_order_mark(project: pytest.Pytester) -> None:
    _write(project, "x.sql", "\ufeff-- name: a\nSELECT 1\n")
    project.runpytest("--apportion-update-golden").assert_outcomes(passed=1)


def test_another_conftest_can_have_its_own_update_option(project: pytest.Pytester) -> None:
    option = 'parser.addoption("--update-golden", action="store_true")'
    project.makeconftest(f"def pytest_addoption(parser):\n    {option}\n")
    project.makepyfile("def test_own():\n    pass\n")
    project.runpytest("--update-golden").assert_outcomes(passed=1)


def test_a_script_keeps_what_the_user_cached(spark: SparkSession) -> None:
    spark.range(3).createOrReplaceGlobalTempView("kept")
    spark.catalog.cacheTable("global_temp.kept")
    script = parse("-- name: own\nCACHE TABLE own AS SELECT 7 AS b\n", "x.sql")
    run = ScriptRun(script, "x.sql", spark)
    run.run(script.statements[0])
    run.close()
    assert spark.catalog.isCached("global_temp.kept")
    assert not run._session.catalog.isCached("own")
    spark.catalog.uncacheTable("global_temp.kept")
    spark.catalog.dropGlobalTempView("kept")


@pytest.mark.parametrize("value", ["DATE '-0001-01-01'", "INTERVAL '1' MONTH"])
def test_a_value_that_python_lacks_says_what_to_do(value: str, spark: SparkSession) -> None:
    script = parse(f"-- name: own\nSELECT {value} AS v\n", "x.sql")
    with pytest.raises(StatementError, match=r"'own' failed: .*: cast its column to string"):
        ScriptRun(script, "x.sql", spark).run(script.statements[0])


def test_sql_files_outside_the_listed_directories_are_ignored(pytester: pytest.Pytester) -> None:
    (pytester.path / "queries.sql").write_text("SELECT 1")
    (pytester.path / "old.golden").write_text("anything")
    pytester.runpytest().assert_outcomes()
    pytester.makeini("[pytest]\napportion_sql_tests = sql_tests\n")
    pytester.mkdir("sql_tests")
    pytester.runpytest().assert_outcomes()


def test_a_listed_directory_can_be_beside_the_directory_of_the_ini_file(
    project: pytest.Pytester,
) -> None:
    project.mkdir("inner")
    path = project.path / "inner" / "pytest.ini"
    path.write_text("[pytest]\napportion_sql_tests = ../sql_tests\n")
    _write(project, "x.sql", "-- name: a\nSELECT 1\n")
    result = project.runpytest("-c", path, "--apportion-update-golden", "sql_tests")
    result.assert_outcomes(passed=1)


def test_a_listed_directory_that_does_not_exist_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\napportion_sql_tests = sql_test\n")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: apportion_sql_tests lists */sql_test, which is not a dir*"]
    )


def test_the_plugin_works_with_xdist_except_for_updates(project: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    text = "-- setup\nSELECT 1\n-- name: a\nSELECT 2\n-- name: b\nSELECT 3\n"
    _write(project, "x.sql", text)
    _write(project, "y.sql", text)
    project.runpytest("--apportion-update-golden").assert_outcomes(passed=4)
    project.runpytest("-n", "2").assert_outcomes(passed=4)
    refused = project.runpytest("-n", "2", "--apportion-update-golden")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    message = "ERROR: --apportion-update-golden writes to shared files: run pytest*-n"
    refused.stderr.fnmatch_lines([message])


# On Spark Connect


@pytest.mark.usefixtures("connect")
def test_goldens_are_the_same_on_spark_connect(
    pytester: pytest.Pytester, spark: SparkSession
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text("utf-8")
    (script,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    (conftest,) = [
        text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "sc://" in text
    ]
    (expected,) = re.findall(r"```text\n(-- name: .*?)```", page, re.DOTALL)
    folder = pytester.mkdir("sql_tests")
    (folder / "orders.sql").write_text(script)
    pytester.makeini("[pytest]\napportion_sql_tests = sql_tests\n")
    # A server in the same process, and its client.
    pytester.makeconftest(
        "import apportion, pytest\nfrom pyspark.sql import SparkSession\n\n"
        + conftest.replace("sc://localhost:15002", "local[2]")
    )
    pytester.runpytest_subprocess("--apportion-update-golden").assert_outcomes(passed=2)
    assert (folder / "orders.golden").read_text() == expected
    (pytester.path / "conftest.py").unlink()
    pytester.runpytest().assert_outcomes(passed=2)

"""Whatever a file contains, `lint` has findings for it and no other error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from apportion.cli import app
from apportion.hints import lint
from apportion.hints.formats import CheckedFile, to_github, to_json, to_sarif
from tests.mutations import SEEDS, bounded, with_other_bytes, with_other_pieces

from .odd_queries import odd_queries

ODD = [sql for _, sql in odd_queries()]
PIECES = [
    "/*+ ", "*/", "/*", "--+ ", "--", "\n", "\r\n", "'", '"', "`", "$$", "(", ")", ",", ";",
    "{{ ", " }}",
    "{% ", " %}", "{#", "#}", "{% raw %}", "{% endraw %}", "{% macro m() %}", "{% endmacro %}",
    "SELECT ", "WITH c AS ", "FROM t ", "PARALLELISM(8)", "RANGES(even)", "MERGE(t)", "REPARTITION",
    "EXECUTE IMMEDIATE ", "BEGIN ",
    "END ", "r'\\'", "|> ", "\t", "\x1b[2J", "\u2028", "\U0001f600", "\0",
]  # fmt: skip


def check(sql: str) -> None:
    findings = list(lint(sql))
    checked = [CheckedFile("a.sql", sql, findings)]
    json.dumps([to_json(checked), to_sarif(checked, "1", [])])
    assert all("\n" not in line for line in to_github(checked))
    for finding in findings:
        assert 0 <= finding.offset <= finding.offset + finding.length <= len(sql)


@SEEDS
def test_sql_with_other_bytes_raises_no_error(seeds: range) -> None:
    for draw in bounded(seeds):
        content = with_other_bytes(draw, draw.choice(ODD).encode())
        check(content.decode(errors="replace"))


@SEEDS
def test_sql_of_random_pieces_raises_no_error(seeds: range) -> None:
    for draw in bounded(seeds):
        check("".join(draw.choices(PIECES, k=draw.randint(1, 60))))


@SEEDS
def test_sql_with_other_words_raises_no_error(seeds: range) -> None:
    for draw in bounded(seeds):
        check(" ".join(with_other_pieces(draw, draw.choice(ODD).split(" "))))


@pytest.mark.parametrize("seed", range(20))
def test_the_output_for_random_pieces_has_no_control_characters(seed: int, tmp_path: Path) -> None:
    (draw,) = bounded([seed])
    file = tmp_path / "a.sql"
    file.write_text("".join(draw.choices(PIECES, k=40)), "utf-8", newline="")
    result = CliRunner().invoke(app, ["lint", str(file)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in (0, 1)
    assert not set("\x1b\0\r").intersection(result.output)

"""`apportion lint`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

import typer
from rich.cells import cell_len
from rich.progress import track
from rich.text import Text

from apportion._util.units import count_text
from apportion.cli.support.console import err, fail, out
from apportion.cli.support.sources import Source, read_sources
from apportion.errors import did_you_mean
from apportion.hints import CODES, Finding, lint
from apportion.sql.positions import Positions

_HAS_FINDINGS = 1
_FILES_WORTH_A_PROGRESS_BAR = 20
_STYLES = {"error": "bold red", "warning": "bold yellow"}


class _Checked(NamedTuple):
    """SQL text and its findings."""

    source: Source
    findings: list[Finding]


def lint_command(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|DIR|-...",
            help="SQL files, directories to search for .sql files, or - for standard input.",
        ),
    ],
    format: Annotated[
        Literal["text", "json", "github"],
        typer.Option(help="text for people, json for programs, github for GitHub annotations."),
    ] = "text",
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Code to ignore, such as APH202. Repeatable."),
    ] = None,
) -> None:
    """Find SQL hints that Spark silently ignores, rejects, or reads differently.

    ```text
    $ apportion lint query.sql
    query.sql:1:12: error APH201 unknown hint PARALELISM: Spark ignores it and
    only logs a warning
      1 | SELECT /*+ PARALELISM(8) */ city, count(*) FROM people GROUP BY city
        |            ^^^^^^^^^^
      = did you mean PARALLELISM?
    1 finding in 1 of 1 file
    ```

    Exit codes: 0 no findings, 1 findings, 2 wrong usage or a file that cannot be read.
    """
    ignored = _codes(ignore or [])
    sources = [source for path in paths for source in read_sources(path)]
    checked = [_check(source, ignored) for source in _with_progress(sources)]
    {"text": _print_text, "json": _print_json, "github": _print_github}[format](checked)
    if any(findings for _, findings in checked):
        raise typer.Exit(_HAS_FINDINGS)


def _codes(names: list[str]) -> set[str]:
    codes = {name.upper() for name in names}
    for code in sorted(codes - CODES.keys()):
        fail(f"unknown code {code}.{did_you_mean(code, CODES)} Known codes: {', '.join(CODES)}")
    return codes


def _with_progress(sources: list[Source]) -> Iterable[Source]:
    quiet = len(sources) < _FILES_WORTH_A_PROGRESS_BAR or not err.is_terminal
    return track(sources, "Checking", console=err, transient=True, disable=quiet)


def _check(source: Source, ignored: set[str]) -> _Checked:
    findings = lint(source.sql)
    return _Checked(source, [finding for finding in findings if finding.code not in ignored])


def _print_text(checked: list[_Checked]) -> None:
    for source, findings in checked:
        positions = Positions(source.sql)
        for finding in findings:
            out.print(_headline(source, finding), soft_wrap=True)
            out.print(_excerpt(positions, finding), soft_wrap=True)
            if finding.suggestion:
                out.print(Text(f"  = {finding.suggestion}\n"), soft_wrap=True)
            else:
                out.print()
    count = sum(len(findings) for _, findings in checked)
    bad = sum(1 for _, findings in checked if findings)
    files = count_text(len(checked), "file")
    summary = (
        f"{count_text(count, 'finding')} in {bad} of {files}" if count else f"{files}, no findings"
    )
    err.print(summary, markup=False)


def _headline(source: Source, finding: Finding) -> Text:
    return Text.assemble(
        f"{source.name}:{finding.line}:{finding.column}: ",
        (f"{finding.severity} {finding.code}", _STYLES[finding.severity]),
        f" {finding.message}",
    )


def _excerpt(positions: Positions, finding: Finding) -> Text:
    """Return the first line of a finding, with carets under it."""
    line = positions.text_of_line(finding.line)
    before, rest = line[: finding.column - 1], line[finding.column - 1 :]
    about = rest[: finding.length]
    number = str(finding.line)
    margin = " " * len(number)
    return Text.assemble(
        f"  {number} | {_flat(line)}\n  {margin} | {' ' * cell_len(_flat(before))}",
        ("^" * max(1, cell_len(_flat(about))), _STYLES[finding.severity]),
    )


def _flat(text: str) -> str:
    # A tab gets the same width everywhere, so that the carets stay below the finding.
    return text.replace("\t", "    ")


def _print_json(checked: list[_Checked]) -> None:
    found = [
        {"file": source.name, **dataclasses.asdict(finding)}
        for source, findings in checked
        for finding in findings
    ]
    print(json.dumps(found, indent=2))


def _print_github(checked: list[_Checked]) -> None:
    for source, findings in checked:
        positions = Positions(source.sql)
        for finding in findings:
            end_line, end_column = positions.line_column(finding.offset + finding.length)
            place = f"file={_property(source.name)},line={finding.line},col={finding.column}"
            if end_line == finding.line:
                place += f",endColumn={end_column}"
            text = finding.message + (f" ({finding.suggestion})" if finding.suggestion else "")
            print(f"::{finding.severity} {place},title={finding.code}::{_data(text)}")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

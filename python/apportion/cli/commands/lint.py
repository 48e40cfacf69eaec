"""`apportion lint`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
import yaml
from rich.cells import cell_len
from rich.progress import track
from rich.text import Text

from apportion._util.paths import existing_path
from apportion._util.units import count_text
from apportion.cli.support.console import err, fail, note, out
from apportion.cli.support.sources import list_sources, read_source
from apportion.errors import ApportionError, InputError, did_you_mean
from apportion.hints import CODES, Finding, lint
from apportion.hints.formats import CheckedFile, to_github, to_json, to_sarif
from apportion.hints.schema import find_table_in
from apportion.redaction import one_line
from apportion.sql.files import PROJECT_FILE, find_project_files
from apportion.sql.positions import Positions

_HAS_FINDINGS = 1
_IS_UNREADABLE = 2
_FILES_WORTH_A_PROGRESS_BAR = 20
# Characters of a line to show on each side of a finding's start. Some files are one long line.
_CONTEXT = 120
_STYLES = {"error": "bold red", "warning": "bold yellow"}


def lint_command(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|DIR|-...",
            help="SQL files, directories to search for .sql files, dbt projects, or - for "
            "standard input.",
        ),
    ],
    format: Annotated[
        Literal["text", "json", "github", "sarif"],
        typer.Option(help="github: annotations on a pull request; sarif: code scanning."),
    ] = "text",
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Code to ignore, such as APH202. Repeatable."),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tables as YAML or JSON, {table: {column: type}}, for rules that need them.",
        ),
    ] = None,
) -> None:
    """Find SQL hints that Spark ignores, rejects or reads differently.

    A directory with a dbt_project.yml is a dbt project: its models, macros, snapshots, analyses,
    tests and compiled models are checked.

    Exit codes: 0 no findings, 1 findings, 2 wrong usage or a file that cannot be read. The other
    files are checked in any case.
    """
    ignored = _codes(ignore or [])
    tables = None if schema is None else _read_schema(schema)
    names = list(dict.fromkeys(name for path in paths for name in _list_files(path)))
    checked: list[CheckedFile] = []
    unreadable: list[str] = []
    quiet = len(names) < _FILES_WORTH_A_PROGRESS_BAR or not err.is_terminal
    for name in track(names, "Checking", console=err, transient=True, disable=quiet):
        try:
            checked.append(_check(name, ignored, tables))
        except ApportionError as error:
            unreadable.append(str(error))
    _print(checked, unreadable, format)
    for message in unreadable:
        note(f"Error: {message}")
    if unreadable:
        raise typer.Exit(_IS_UNREADABLE)
    if any(file.findings for file in checked):
        raise typer.Exit(_HAS_FINDINGS)


def _list_files(path: str) -> list[str]:
    directory = existing_path(path)
    files = find_project_files(directory) if directory else None
    if files is None:
        return list_sources(path)
    if not files:
        fail(f"the dbt project {path} has no SQL files in the folders that {PROJECT_FILE} names")
    return [str(file) for file in files]


def _codes(names: list[str]) -> set[str]:
    codes = {name.upper() for name in names}
    for code in sorted(codes - CODES.keys()):
        fail(f"unknown code {code}.{did_you_mean(code, CODES)} Known codes: {', '.join(CODES)}")
    return codes


def _read_schema(file: Path) -> Mapping[str, Any]:
    try:
        # Names such as `on` and `no` are text, not booleans.
        schema = yaml.load(file.read_text("utf-8"), yaml.BaseLoader)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        fail(f"cannot read the schema {file}: {one_line(str(error))}")
    if not isinstance(schema, dict):
        fail(f"the schema {file} must have the form {{table: {{column: type}}}}, as YAML or JSON")
    try:
        find_table_in(schema)
    except InputError as error:
        fail(f"{file}: {error}")
    return schema


def _check(name: str, ignored: set[str], schema: Mapping[str, Any] | None) -> CheckedFile:
    source = read_source(name)
    findings = [finding for finding in lint(source.sql, schema) if finding.code not in ignored]
    return CheckedFile(source.name, source.sql, findings)


def _print(checked: list[CheckedFile], unreadable: list[str], format: str) -> None:
    if format == "json":
        print(json.dumps(to_json(checked), indent=2))
    elif format == "github":
        for line in to_github(checked):
            out.write(f"{line}\n")
    elif format == "sarif":
        print(json.dumps(to_sarif(checked, version("apportion"), unreadable), indent=2))
    else:
        _print_text(checked)


def _print_text(checked: list[CheckedFile]) -> None:
    for file in checked:
        positions = Positions(file.sql)
        for finding in file.findings:
            out.print(_headline(file.name, finding), soft_wrap=True)
            out.print(_excerpt(positions, finding), soft_wrap=True)
            if finding.suggestion:
                out.print(Text(f"  = {one_line(finding.suggestion)}\n"), soft_wrap=True)
            else:
                out.print()
    count = sum(len(file.findings) for file in checked)
    bad = sum(1 for file in checked if file.findings)
    files = count_text(len(checked), "file")
    summary = (
        f"{count_text(count, 'finding')} in {bad} of {files}" if count else f"{files}, no findings"
    )
    err.print(summary, markup=False)


def _headline(name: str, finding: Finding) -> Text:
    return Text.assemble(
        f"{one_line(name)}:{finding.line}:{finding.column}: ",
        (f"{finding.severity} {finding.code}", _STYLES[finding.severity]),
        f" {one_line(finding.message)}",
    )


def _excerpt(positions: Positions, finding: Finding) -> Text:
    """Return the first line of a finding, or the part around it, with carets under it."""
    line = positions.text_of_line(finding.line)
    column = finding.column - 1
    start, end = max(0, column - _CONTEXT), column + _CONTEXT
    before = _flat(("…" if start else "") + line[start:column])
    about = _flat(line[column : min(end, column + finding.length)])
    after = _flat(line[min(end, column + finding.length) : end] + ("…" if end < len(line) else ""))
    number = str(finding.line)
    margin = " " * len(number)
    return Text.assemble(
        f"  {number} | {before}{about}{after}\n  {margin} | {' ' * cell_len(before)}",
        ("^" * max(1, cell_len(about)), _STYLES[finding.severity]),
    )


def _flat(text: str) -> str:
    # A tab gets the same width everywhere, so that the carets stay below the finding.
    return one_line(text.replace("\t", "    "))

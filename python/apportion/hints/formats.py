"""Findings of files in the formats of other programs: JSON, GitHub annotations and SARIF."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from apportion.hints.findings import CODES, Finding, sentence
from apportion.sql.positions import Positions

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


class CheckedFile(NamedTuple):
    """A file, its text and its findings. The name of standard input is `<stdin>`."""

    name: str
    sql: str
    findings: list[Finding]


def to_json(files: Sequence[CheckedFile]) -> list[dict[str, Any]]:
    """Return the findings as records, each with its file."""
    return [
        {"file": file.name, **dataclasses.asdict(finding)}
        for file in files
        for finding in file.findings
    ]


def to_github(files: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield the workflow command for each finding. GitHub shows it on the pull request."""
    for file in files:
        positions = Positions(file.sql)
        for finding in file.findings:
            end_line, end_column = positions.line_column(finding.offset + finding.length)
            place = f"file={_property(file.name)},line={finding.line},col={finding.column}"
            if end_line == finding.line:
                place += f",endColumn={end_column}"
            title = f"title={finding.code}"
            yield f"::{finding.severity} {place},{title}::{_data(sentence(finding))}"


def to_sarif(files: Sequence[CheckedFile], version: str, unreadable: Sequence[str]) -> Any:
    """Return a log in SARIF 2.1.0 of a run of this version, with the errors of `unreadable` files.

    Columns count characters. Relative names of files are relative to `%SRCROOT%`.
    """
    codes = list(CODES)
    rules = [
        {
            "id": code,
            "shortDescription": {"text": what[0].upper() + what[1:]},
            "defaultConfiguration": {"level": severity},
        }
        for code, (severity, what) in CODES.items()
    ]
    errors = [{"level": "error", "message": {"text": text}} for text in unreadable]
    run = {
        "tool": {"driver": {"name": "apportion lint", "version": version, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {"executionSuccessful": not unreadable, "toolExecutionNotifications": errors}
        ],
        "results": [
            {
                "ruleId": finding.code,
                "ruleIndex": codes.index(finding.code),
                "level": finding.severity,
                "message": {"text": sentence(finding)},
                "locations": [{"physicalLocation": _locate(file.name, positions, finding)}],
            }
            for file in files
            for positions in [Positions(file.sql)]
            for finding in file.findings
        ],
    }
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _locate(name: str, positions: Positions, finding: Finding) -> dict[str, Any]:
    end_line, end_column = positions.line_column(finding.offset + finding.length)
    file = Path(name)
    artifact = (
        {"uri": file.as_uri()}
        if file.is_absolute()
        else {"uri": quote(os.fsencode(file.as_posix())), "uriBaseId": "%SRCROOT%"}
    )
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endLine": end_line,
        "endColumn": end_column,
    }
    return {"artifactLocation": artifact, "region": region}


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

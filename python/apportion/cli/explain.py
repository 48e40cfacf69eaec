"""`apportion explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from apportion import eventlog
from apportion.cli.console import err, fail, out
from apportion.cli.progress import waiting
from apportion.eventlog import Application, Query
from apportion.explain import html, mermaid, text
from apportion.explain.view import QueryView, view


def explain(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="An event log: a file, plain or .zstd, or the directory of a rolling log.",
        ),
    ],
    query: Annotated[
        list[int] | None,
        typer.Option(help="A query by its number in Spark's UI; repeatable. Default: all decided."),
    ] = None,
    format: Annotated[
        Literal["text", "html", "json", "mermaid"],
        typer.Option(
            help="text to read, html for a page to click through, json for programs, mermaid for "
            "Markdown."
        ),
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Default: the terminal.")
    ] = None,
) -> None:
    """Show the stages of queries that ran: what each reads, its tasks and why, what is chained.

    The log is read without Spark, also of an application that runs still or was killed.

    Exit codes: 0 shown, 2 wrong usage or a log that cannot be read.
    """
    with waiting(f"Reading {log}"):
        application = eventlog.read(log)
    views = [view(application, each) for each in _chosen(application, query or [], log)]
    if format == "html":
        title = f"{application.name or 'Application'} ({application.id})"
        shown = html.render(title, views, application.skipped)
    else:
        shown = {"text": _text, "json": _json, "mermaid": _mermaid}[format](views)
    if output:
        try:
            output.write_text(shown, encoding="utf-8")
        except OSError as error:
            fail(f"{output} cannot be written: {error.strerror}")
    else:
        out.print(shown, markup=False, soft_wrap=True, end="")
    for skipped in application.skipped:
        err.print(f"Left out: {skipped}", markup=False, soft_wrap=True)


def _chosen(application: Application, numbers: list[int], log: Path) -> list[Query]:
    known = application.queries
    for number in numbers:
        if number not in known:
            there = f"{min(known)} to {max(known)}" if known else "none"
            fail(f"{log} has no query {number}; there are {there}")
    if numbers:
        return [known[number] for number in numbers]
    decided = [query for query in known.values() if query.decisions]
    if not decided:
        fail(f"{log} has no decision of Apportion in its {len(known)} queries; --query shows one")
    return decided


def _text(views: list[QueryView]) -> str:
    return "\n".join(map(text.render, views))


def _json(views: list[QueryView]) -> str:
    return json.dumps([view.as_json() for view in views], indent=2, ensure_ascii=False) + "\n"


def _mermaid(views: list[QueryView]) -> str:
    return "\n".join(map(mermaid.render, views))

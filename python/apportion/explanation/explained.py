"""Explanations of finished queries, in all formats."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from apportion import eventlog
from apportion._util.units import count_text
from apportion.errors import ApportionError
from apportion.eventlog import Application, Query, locate
from apportion.explanation import run_queries
from apportion.explanation.render import html, mermaid, text
from apportion.explanation.views.view import QueryView, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclasses.dataclass(frozen=True, repr=False)
class Explained:
    """Queries with their stages: inputs, tasks with the reason, and pipelines of operators.

    Notebooks show it as an interactive page. `print` shows it as text.
    """

    title: str
    queries: list[QueryView]
    remarks: list[str]
    """Omitted parts of the event log, with the reasons."""

    def text(self) -> str:
        """Return lines of text, with the last stage first."""
        return "\n".join(map(text.render, self.queries))

    def html(self) -> str:
        """Return one interactive, self-contained HTML page with all queries."""
        return html.render(self.title, self.queries, self.remarks)

    def mermaid(self) -> str:
        """Return a Mermaid flowchart of the stages for each query."""
        return "\n".join(map(mermaid.render, self.queries))

    def json(self) -> str:
        """Return a JSON list with an object for each query."""
        queries = [query.as_json() for query in self.queries]
        return json.dumps(queries, indent=2, ensure_ascii=False) + "\n"

    def __repr__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return html.framed(self.title, self.html())


def explain(
    what: DataFrame | str | os.PathLike[str],
    *,
    queries: Sequence[int] = (),
    logs: str | os.PathLike[str] | None = None,
) -> Explained:
    """Run and explain a DataFrame, or explain queries that ran before.

    `what` is one of:

    - a DataFrame of a classic session, which is run; all its rows are collected
    - the path of an event log
    - the URL of a Spark UI or history server
    - the id of an application with a log in the directory `logs`

    `queries` are numbers as in Spark's UI. The default is all queries with decisions.

    Raises `ApportionError` if nothing can be explained; the message names the next step. Raises
    Spark's errors if the DataFrame fails.
    """
    if not isinstance(what, str | os.PathLike):
        # A DataFrame keeps the plan of its first run. A copy is planned again.
        application, _, _ = run_queries.run(what.sparkSession, [what.select("*")])
        return from_run(application, queries)
    with locate.event_log(os.fspath(what), logs) as log:
        application = eventlog.read(log)
    return from_log(application, os.fspath(what), queries)


def from_log(application: Application, source: str, numbers: Sequence[int] = ()) -> Explained:
    """Explain the queries with these numbers, or all queries with decisions.

    `source` names the log in messages. Raises `ApportionError` for an unknown number, and if no
    query has a decision.
    """
    chosen = application.numbered(numbers, source) or _decided(application)
    if not chosen:
        count = count_text(len(application.queries), "query")
        content = f"{count}, but no decision of Apportion" if application.queries else "no queries"
        raise ApportionError("; ".join([f"{source} has {content}", *application.skipped]))
    return _explained(application, chosen)


def from_run(application: Application, numbers: Sequence[int] = ()) -> Explained:
    """Explain queries that were run for this, or all of them if none has a decision."""
    chosen = application.numbered(numbers, "this run") or _decided(application)
    return _explained(application, chosen or list(application.queries.values()))


def _decided(application: Application) -> list[Query]:
    return [query for query in application.queries.values() if query.decisions]


def _explained(application: Application, chosen: Sequence[Query]) -> Explained:
    title = f"{application.name or 'Application'} ({application.id})"
    return Explained(title, [view(application, query) for query in chosen], application.skipped)

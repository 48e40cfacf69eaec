"""Queries that ran, to be shown in any of the formats."""

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
    """Queries with their stages, what each reads, its tasks and why, and what is chained.

    Notebooks show it as a page to click through, and print it as text.
    """

    title: str
    queries: list[QueryView]
    remarks: list[str]
    """What was left out of an event log, and why."""

    def text(self) -> str:
        """Return lines to read, the last stage first."""
        return "\n".join(map(text.render, self.queries))

    def html(self) -> str:
        """Return a page to click through that needs nothing else, with all queries."""
        return html.render(self.title, self.queries, self.remarks)

    def mermaid(self) -> str:
        """Return a flowchart of stages for each query."""
        return "\n".join(map(mermaid.render, self.queries))

    def json(self) -> str:
        """Return all of it as a JSON list with an object for each query."""
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
    """Run a DataFrame and return what became of it, or the same of queries that ran before.

    `what` is a DataFrame of a classic session, whose rows are all collected; or an event log, the
    URL of a Spark UI or history server, or an application's id, whose log is looked for in the
    directory `logs`. `queries` are numbers as in Spark's UI; without them all queries are there
    that something was decided about.

    Raises `ApportionError` where nothing can be explained, with what to do about it, and what Spark
    raises for a DataFrame.
    """
    if not isinstance(what, str | os.PathLike):
        # A DataFrame keeps the plan of its first run; this one plans anew.
        application, _, _ = run_queries.run(what.sparkSession, [what.select("*")])
        return from_run(application, queries)
    with locate.event_log(os.fspath(what), logs) as log:
        application = eventlog.read(log)
    return from_log(application, os.fspath(what), queries)


def from_log(application: Application, source: str, numbers: Sequence[int] = ()) -> Explained:
    """Return the queries of these numbers, or all with decisions; `source` is for messages.

    Raises `ApportionError` for a number that is not there, and if nothing was decided.
    """
    chosen = application.numbered(numbers, source) or _decided(application)
    if not chosen:
        count = count_text(len(application.queries), "query")
        what = f"no decision of Apportion in its {count}" if application.queries else "no queries"
        raise ApportionError("; ".join([f"{source} has {what}", *application.skipped]))
    return _explained(application, chosen)


def from_run(application: Application, numbers: Sequence[int] = ()) -> Explained:
    """Return the same of queries that ran to be explained, all of them if nothing was decided."""
    chosen = application.numbered(numbers, "what ran") or _decided(application)
    return _explained(application, chosen or list(application.queries.values()))


def _decided(application: Application) -> list[Query]:
    return [query for query in application.queries.values() if query.decisions]


def _explained(application: Application, chosen: Sequence[Query]) -> Explained:
    title = f"{application.name or 'Application'} ({application.id})"
    return Explained(title, [view(application, query) for query in chosen], application.skipped)

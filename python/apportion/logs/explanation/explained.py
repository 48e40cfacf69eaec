"""Explanations of finished queries, in all formats."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apportion._util.paths import write_text
from apportion._util.units import count_text
from apportion.errors import ApportionError
from apportion.logs import eventlog
from apportion.logs.eventlog import Application, Query, locate
from apportion.logs.explanation import run_queries
from apportion.logs.explanation.render import html, mermaid, text
from apportion.logs.explanation.views.streams import StreamView, stream_views
from apportion.logs.explanation.views.view import QueryView, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Above this number of queries, the slowest queries come first.
_LONG_LOG = 10
_NO_DECISIONS = (
    "The log has no decisions of Apportion, so this is the profile of its queries as they ran."
)


@dataclasses.dataclass(frozen=True, repr=False)
class Explained:
    """Queries with their stages: inputs, tasks with the reason, and pipelines of operators.

    Notebooks show it as an interactive page. `print` shows it as text.
    """

    title: str
    queries: list[QueryView]
    remarks: list[str]
    """Omitted parts of the event log, with the reasons."""
    notes: list[str] = dataclasses.field(default_factory=list)
    """Sentences about the whole log, such as that it has no decisions."""
    streams: list[StreamView] = dataclasses.field(default_factory=list)
    """Streams that Apportion controlled."""

    def text(self) -> str:
        """Return lines of text, with the last stage first.

        Streams come first, and then a list of several queries. A long log has its slowest queries
        first.
        """
        notes = [f"{note}\n" for note in self.notes]
        streams = [text.stream(stream) for stream in self.streams]
        several = [text.overview(self._slowest_first())] if len(self.queries) > 1 else []
        return "\n".join([*notes, *streams, *several, *map(text.render, self._in_reading_order())])

    def html(self) -> str:
        """Return one interactive, self-contained HTML page with all queries."""
        return html.render(
            self.title,
            self._in_reading_order(),
            self.remarks,
            self.notes,
            self._slowest_first(),
            self.streams,
        )

    def mermaid(self) -> str:
        """Return a Mermaid flowchart of the stages for each query."""
        return "\n".join(map(mermaid.render, self.queries))

    def json(self) -> str:
        """Return a JSON list with an object for each query."""
        queries = [query.as_json() for query in self.queries]
        return json.dumps(queries, indent=2, ensure_ascii=False) + "\n"

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the explanation to a file: .html, .json, .mmd (Mermaid) or .txt.

        Raises `ApportionError` for another extension and for a file that cannot be written.
        """
        path = Path(file)
        formats = {".html": self.html, ".json": self.json, ".mmd": self.mermaid, ".txt": self.text}
        if path.suffix not in formats:
            raise ApportionError(f"{path}: the name must end in {', '.join(formats)}")
        try:
            write_text(path, formats[path.suffix]())
        except OSError as error:
            raise ApportionError(f"cannot write {path}: {error.strerror}") from error

    def _slowest_first(self) -> list[QueryView]:
        # A query that has not ended may be the slowest.
        return sorted(
            self.queries,
            key=lambda query: math.inf if query.seconds is None else query.seconds,
            reverse=True,
        )

    def _in_reading_order(self) -> list[QueryView]:
        return self._slowest_first() if len(self.queries) > _LONG_LOG else self.queries

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

    - a DataFrame of a classic session, which is run; the rows of a large result are discarded
    - the path of an event log
    - the URL of a Spark UI or history server
    - the id of an application with a log in the directory `logs`

    `queries` are numbers as in Spark's UI. The default is all queries with decisions, or all
    queries of a log without decisions.

    Raises `ApportionError` if nothing can be explained; the message names the next step. Raises
    Spark's errors if the DataFrame fails.
    """
    if not isinstance(what, str | os.PathLike):
        # A DataFrame keeps the plan of its first run. A copy is planned again.
        application = run_queries.run_frame(what.select("*"))
        return from_run(application, queries)
    with locate.event_log(os.fspath(what), logs) as log:
        application = eventlog.read(log)
    return from_log(application, os.fspath(what), queries)


def from_log(application: Application, source: str, numbers: Sequence[int] = ()) -> Explained:
    """Explain the queries with these numbers, or all queries with decisions.

    Without any decision in the log, these are all queries. Streams are explained unless there are
    `numbers`. `source` names the log in messages. Raises `ApportionError` for an unknown number,
    and for a log without queries and streams.
    """
    if not application.queries and not application.streams:
        raise ApportionError(
            "; ".join([_without_queries(application, source), *application.skipped])
        )
    decided = _decided(application)
    chosen = application.numbered(numbers, source) or decided or list(application.queries.values())
    has_profile = application.queries and not decided
    streams = [] if numbers else stream_views(application)
    return _explained(application, chosen, [_NO_DECISIONS] if has_profile else [], streams)


def _without_queries(application: Application, source: str) -> str:
    if application.other_stages:
        stages = count_text(len({stage.id for stage in application.other_stages}), "stage")
        return f"{source} has no SQL queries; its jobs ran {stages} without a query"
    if application.id or application.spark_version:
        return f"{source} has no SQL queries"
    return f"{source} has no queries and no other events of an application"


def from_run(application: Application, numbers: Sequence[int] = ()) -> Explained:
    """Explain queries that were run for this, or all of them if none has a decision."""
    chosen = application.numbered(numbers, "this run") or _decided(application)
    return _explained(application, chosen or list(application.queries.values()), [])


def _decided(application: Application) -> list[Query]:
    return [query for query in application.queries.values() if query.decisions]


def _explained(
    application: Application,
    chosen: Sequence[Query],
    notes: Sequence[str],
    streams: Sequence[StreamView] = (),
) -> Explained:
    title = application.name or "Application"
    if application.id:
        title += f" ({application.id})"
    views = [view(application, query) for query in chosen]
    return Explained(title, views, application.skipped, list(notes), list(streams))

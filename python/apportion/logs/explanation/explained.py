"""Explanations of finished queries, in all formats."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apportion._util.paths import FORMATS, existing_path, write_text
from apportion._util.units import count_text
from apportion.errors import ApportionError
from apportion.logs import eventlog
from apportion.logs.advise.advice import advise
from apportion.logs.eventlog import Application, Query, locate
from apportion.logs.eventlog.input.files import STANDARD_INPUT
from apportion.logs.eventlog.work import work_of
from apportion.logs.explanation import run_queries
from apportion.logs.explanation.render import html, mermaid, picture, text
from apportion.logs.explanation.views.streams import StreamView
from apportion.logs.explanation.views.view import QueryView, view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    advice: str | None = None
    """The command for advice on the same log; None without the path of a log."""

    def text(self) -> str:
        """Return lines of text, with the last stage first.

        Streams come first, and then a list of several queries. The slowest queries come first.
        """
        notes = [f"{note}\n" for note in self.notes]
        streams = [text.stream(stream) for stream in self.streams]
        slowest = self._slowest_first()
        several = [text.overview(slowest)] if len(slowest) > 1 else []
        advice = [f"For advice, run: {self.advice}\n"] if self.advice else []
        return "\n".join([*notes, *streams, *several, *map(text.render, slowest), *advice])

    def html(self) -> str:
        """Return one interactive, self-contained HTML page with all queries."""
        return html.render(
            self.title,
            self._slowest_first(),
            self.remarks,
            self.notes,
            self.streams,
            self.advice,
        )

    def mermaid(self) -> str:
        """Return a Mermaid flowchart of the stages for each query."""
        return "\n".join(map(mermaid.render, self.queries))

    def svg(self) -> str:
        """Return a picture of the stages of each query, one below the other.

        Raises `ApportionError` if no query has stages.
        """
        return picture.render(self._slowest_first())

    def json(self) -> str:
        """Return a JSON list with an object for each query."""
        queries = [query.as_json() for query in self.queries]
        return json.dumps(queries, indent=2, ensure_ascii=False) + "\n"

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the explanation to a file: .html, .svg, .json, .mmd (Mermaid) or .txt.

        Raises `ApportionError` for another extension and for a file that cannot be written.
        """
        path = Path(file)
        if path.suffix not in FORMATS:
            raise ApportionError(f"{path}: the name must end in {', '.join(FORMATS)}")
        try:
            write_text(path, getattr(self, FORMATS[path.suffix])())
        except OSError as error:
            raise ApportionError(f"cannot write {path}: {error.strerror}") from error

    def _slowest_first(self) -> list[QueryView]:
        # A query that has not ended may be the slowest.
        return sorted(
            self.queries,
            key=lambda query: math.inf if query.seconds is None else query.seconds,
            reverse=True,
        )

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
    if isinstance(what, str | os.PathLike):
        with locate.event_log(os.fspath(what), logs) as log:
            application = eventlog.read(log)
        return from_log(application, os.fspath(what), queries)
    if not hasattr(what, "sparkSession"):
        raise ApportionError(f"cannot explain {what!r}: give a DataFrame, a path, a URL or an id")
    # A DataFrame keeps the plan of its first run. A copy is planned again.
    return from_run(run_queries.run_frame(what.select("*")), queries)


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
    notes = [_NO_DECISIONS] if application.queries and not decided else []
    if not numbers:
        ran = [query for query in chosen if query.stages or query.decisions or query.failure]
        if ran and len(ran) < len(chosen):
            empty = count_text(len(chosen) - len(ran), "query")
            notes.append(f"Left out: {empty} without tasks.")
            chosen = ran
        notes += _outside_of_sql(application)
    streams = [] if numbers else list(map(StreamView, application.streams.values()))
    options = "".join(f" --query {number}" for number in dict.fromkeys(numbers))
    # `advise` takes paths only, and standard input has been read.
    is_path = source not in STANDARD_INPUT and existing_path(source)
    command = f"apportion advise {shlex.quote(source)}{options}" if chosen and is_path else None
    return dataclasses.replace(_explained(application, chosen, notes, streams), advice=command)


def _outside_of_sql(application: Application) -> Iterator[str]:
    """Yield a sentence about the stages without a query, if they took a second or more."""
    work = work_of([stage for stage in application.other_stages if stage.launched])
    if work and work.task_millis >= 1000:
        stages = count_text(len(work.stages), "stage")
        yield f"Outside of SQL: {stages}, {work.task_millis / 1000:.1f} s of task time."


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
    advice = advise(application, title, [query.id for query in chosen])
    findings = {query.id: query.findings for query in advice.queries}
    views = [view(application, query, findings[query.id]) for query in chosen]
    return Explained(title, views, application.skipped, list(notes), list(streams))

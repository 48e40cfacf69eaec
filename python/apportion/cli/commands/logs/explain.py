"""`apportion explain`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from apportion._spark.jvm import short_errors
from apportion._util.paths import existing_path
from apportion._util.units import count_text
from apportion.cli.support.console import fail, note, writing
from apportion.cli.support.options import Force, Output, choose_format
from apportion.cli.support.outputs import check_outputs
from apportion.cli.support.progress import query_progress, waiting
from apportion.cli.support.sources import errors_in_file, read_statements
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.table_files import find_tables, query_errors, register
from apportion.logs import eventlog
from apportion.logs.eventlog import locate
from apportion.logs.eventlog.input import files
from apportion.logs.explanation import run_queries
from apportion.logs.explanation.explained import from_log, from_run

EXAMPLES = """\
More examples:

- `apportion explain http://localhost:4040`: explain the queries of a running application
- `apportion explain LOG --query 7 -o query.svg`: draw the stages of a query
- `apportion explain app-1 --logs /var/log/spark`: find the log by application id
"""


def explain_command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE.sql|LOG|URL|ID",
            help="SQL to run: a file, or - for standard input. For finished queries: an event log, "
            "the URL of an application's UI or history server page, or an application id.",
        ),
    ],
    query: Annotated[
        list[int] | None,
        typer.Option(
            help="Number of a query in Spark's UI. Repeatable. Default: all queries with "
            "decisions, if there are any."
        ),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(help="For SQL: directory of parquet, csv or json tables."),
    ] = None,
    assignments: Assignments = None,
    master: Master = None,
    logs: Annotated[
        Path | None,
        typer.Option(
            help="For an application id: directory of event logs. Default: the directory in "
            "SPARK_HISTORY_OPTS, or else /tmp/spark-events."
        ),
    ] = None,
    format: Annotated[
        Literal["text", "html", "svg", "json", "mermaid"] | None,
        typer.Option(help="Default: by the ending of --output, else text."),
    ] = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Show the stages of queries, their tasks and the reasons.

    Event logs are read without Spark. A log that was recorded without Apportion gives a profile of
    its queries. The application can still be running, or have been killed.

    Exit codes: 0 shown, 1 a query failed, 2 wrong usage or a log that cannot be read.
    """
    chosen = choose_format(format, output, ["text", "html", "svg", "json", "mermaid"])

    def check(inputs: Iterable[str | Path]) -> None:
        check_outputs("explain", [("--output", output)], inputs, force)

    if what == "-" or what.lower().endswith(".sql"):
        _refuse("a log, not for SQL", {"--logs": logs})
        statements = read_statements(what)
        known_tables = find_tables(tables) if tables else {}
        check([what, *(table.path for table in known_tables.values())])
        spark = start(master, assignments or [])
        with query_errors(known_tables):
            with short_errors(), waiting("Reading the tables' schemas"):
                register(spark, known_tables)
            count = count_text(len(statements), "statement")
            with (
                errors_in_file(statements) as each,
                short_errors(),
                query_progress(spark, count),
            ):
                texts = (statement.text for statement in each)
                application, _, _ = run_queries.run_sql(spark, texts)
        explained = from_run(application, query or [])
    else:
        _refuse(
            f"SQL, not for {what}",
            {"--tables": tables, "--set": assignments, "--master": master},
        )
        if existing_path(what) or "/" in what:
            _refuse(f"an application id, not for {what}", {"--logs": logs})
        with waiting(f"Reading {what}"), locate.event_log(what, logs) as log:
            check(files.logs(log))
            application = eventlog.read(log)
        explained = from_log(application, what, query or [])
    with writing(output) as console:
        console.write(getattr(explained, chosen)())
    if chosen not in ("text", "html"):
        for sentence in explained.notes:
            note(sentence)
    for remark in explained.remarks:
        note(f"Left out: {remark}")


def _refuse(allowed_for: str, options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        fail(f"{', '.join(given)}: only for {allowed_for}")

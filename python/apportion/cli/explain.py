"""`apportion explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from apportion import eventlog
from apportion._spark.jvm import short_errors
from apportion._util.units import count_text
from apportion.cli.support.console import err, fail, writing
from apportion.cli.support.options import Output
from apportion.cli.support.progress import query_progress, waiting
from apportion.cli.support.sources import read_statements
from apportion.cli.support.spark_session import Assignments, Master, start
from apportion.cli.support.tables import find_tables, query_failed, register
from apportion.errors import QueryError
from apportion.eventlog import locate
from apportion.explanation import run_queries
from apportion.explanation.explained import Explained, from_log, from_run

EXAMPLES = """\
Examples:

- `apportion explain report.sql --tables data/`: run your SQL and see its stages
- `apportion explain /tmp/spark-events/local-1700000000000`: queries of an event log
- `apportion explain http://localhost:4040`: those of an application that runs
- `apportion explain http://history:18080/history/app-1 --query 7`: one that a history server knows
- `apportion explain app-1 --logs /var/log/spark`: by its id
- `apportion explain report.sql --format html -o report.html`: as a page to click through
"""


def explain(
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE.sql|LOG|URL|ID",
            help="SQL to run: a file, or - for standard input. Or what ran: an event log (a file, "
            "plain or .zstd, or the directory of a rolling log), the URL of an application's UI or "
            "of its page in a history server, or an application's id.",
        ),
    ],
    query: Annotated[
        list[int] | None,
        typer.Option(help="A query by its number in Spark's UI; repeatable. Default: all decided."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option(
            help="For SQL: a directory of parquet, csv or json tables, by file or folder name."
        ),
    ] = None,
    assignments: Assignments = None,
    master: Master = None,
    logs: Annotated[
        Path | None,
        typer.Option(
            help="For an id: the directory of event logs. Default: the history server's, as "
            "SPARK_HISTORY_OPTS says, else /tmp/spark-events."
        ),
    ] = None,
    format: Annotated[
        Literal["text", "html", "json", "mermaid"],
        typer.Option(
            help="text to read, html for a page to click through, json for programs, mermaid for "
            "Markdown."
        ),
    ] = "text",
    output: Output = None,
) -> None:
    """Show the stages of queries: what each reads, its tasks and why, what is chained.

    Logs are read without Spark, also of an application that runs still or was killed. The UI of a
    running application tells where it writes its log, which has to be readable from here.

    Exit codes: 0 shown, 1 a query failed, 2 wrong usage or a log that cannot be read.
    """
    if what == "-" or what.lower().endswith(".sql"):
        _refuse("a log, not for SQL", {"--logs": logs})
        explained = _run(what, query or [], tables, assignments or [], master)
    else:
        _refuse(
            f"SQL that is run, and {what} is none",
            {"--tables": tables, "--set": assignments, "--master": master},
        )
        explained = _read(what, query or [], logs)
    with writing(output) as console:
        console.file.write(getattr(explained, format)())
    for remark in explained.remarks:
        err.print(f"Left out: {remark}", markup=False, soft_wrap=True)


def _refuse(what_for: str, options: dict[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if given:
        fail(f"{', '.join(given)}: only for {what_for}")


def _run(
    file: str, numbers: list[int], tables: Path | None, assignments: list[str], master: str | None
) -> Explained:
    statements = read_statements(file)
    found = find_tables(tables) if tables else {}
    spark = start(master, assignments)
    try:
        with short_errors(), waiting("Reading the tables' schemas"):
            register(spark, found)
        with short_errors(), query_progress(spark, count_text(len(statements), "statement")):
            application, _, _ = run_queries.run_sql(spark, [each.text for each in statements])
    except QueryError as error:
        query_failed(error, found)
    return from_run(application, numbers)


def _read(what: str, numbers: list[int], logs: Path | None) -> Explained:
    with waiting(f"Reading {what}"), locate.event_log(what, logs) as log:
        application = eventlog.read(log)
    return from_log(application, what, numbers)

"""`apportion advise`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from apportion.advise import render
from apportion.advise.advice import collected
from apportion.advise.reading import read_all
from apportion.cli.support.console import err, fail, writing
from apportion.cli.support.options import Output
from apportion.cli.support.progress import counted
from apportion.errors import ApportionError
from apportion.eventlog.files import logs

EXAMPLES = """\
More examples:

- `apportion advise LOG --query 7`: look at one query
- `apportion advise /var/log/spark --top 5`: rank all jobs, with five findings for each log
- `apportion advise LOG --format html -o advice.html`: write a page to share
"""


def advise_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG", help="Event logs, or directories with event logs at any depth."
        ),
    ],
    query: Annotated[
        list[int] | None,
        typer.Option(
            min=0, help="Number of a query in Spark's UI. Repeatable. Default: all queries."
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="Number of findings per log, and of jobs."),
    ] = 20,
    processes: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Logs to read at the same time. Default: all cores."),
    ] = None,
    format: Annotated[
        Literal["text", "html", "json"],
        typer.Option(help="text for people, html for a page to share, json for programs."),
    ] = "text",
    output: Output = None,
) -> None:
    """Find stages that waste time, in Spark event logs with or without Apportion.

    ```text
    $ apportion advise LOG
    ...
      * Too many tiny tasks, stage 4: HashAggregate
        200 tasks read 1.1 KiB, so 5 B each. The median task took 11 ms.
        Gain: 0 s to 575 ms, 0 to 4.6 core-seconds.
        Apportion decides 1 task by bytes, with a target of 64 MiB per task.
        Without Apportion, one of:
          - spark.sql.shuffle.partitions=1
          - spark.sql.adaptive.enabled=true
    ...
    ```

    A gain has two bounds. It is never more than the time of the stage. If the lower bound is 0,
    the fix may not help. JSON has all findings with their numbers.

    Exit codes: 0 at least one log was read, 2 wrong usage or no log that can be read.
    """
    found = list(dict.fromkeys(str(log) for path in paths for log in logs(path)))
    if not found:
        fail(f"there is no event log in {', '.join(map(str, paths))}")
    if query and len(found) > 1:
        fail("--query: only for a single log")
    results = read_all(found, query or [], processes)
    advice = collected([next(results) for _ in counted(found, "Reading")])
    if not advice.applications:
        raise ApportionError("; ".join(unread.reason for unread in advice.unread[:5]))
    with writing(output) as console:
        if format == "json":
            text = json.dumps(advice.as_json(), indent=2, ensure_ascii=False) + "\n"
        else:
            text = (render.html if format == "html" else render.text)(advice, top)
        console.file.write(text)
    if output:
        for unread in advice.unread:
            err.print(f"Not read: {unread.log}: {unread.reason}", markup=False, soft_wrap=True)

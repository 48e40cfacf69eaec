"""`apportion advise`."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from apportion._util.units import count_text
from apportion.cli.support.console import fail, note, writing
from apportion.cli.support.options import Force, Output, Processes, choose_format
from apportion.cli.support.outputs import POLICIES_MARK, check_outputs, json_text
from apportion.cli.support.progress import counted
from apportion.errors import ApportionError
from apportion.logs.advise import render
from apportion.logs.advise.advice import collected
from apportion.logs.advise.model.findings import ApplicationAdvice
from apportion.logs.advise.reading import default_folder, read_all
from apportion.logs.eventlog import Unread
from apportion.logs.eventlog.input.files import logs
from apportion.policies.from_advice import count_unmatched, from_advice

_STOPPED = 130

EXAMPLES = """\
More examples:

- `apportion advise /var/log/spark --top 5`: rank all jobs, with five findings for each log
- `apportion advise /var/log/spark --policies policies.yaml`: write rules for the jobs in the logs
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
    processes: Processes = None,
    resume: Annotated[
        bool,
        typer.Option(help="Use the results of earlier runs for logs that did not change."),
    ] = True,
    format: Annotated[
        Literal["text", "html", "json"] | None,
        typer.Option(help="Default: by the ending of --output, else text."),
    ] = None,
    policies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a policy file with the settings that help, in YAML or JSON.",
        ),
    ] = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Find stages that waste time, in any Spark event logs.

    A saving has two bounds. It is never more than the time of the stage. If the lower bound is 0,
    the fix may not help. If you stop the command while it reads several logs, run it again to
    continue.

    Exit codes: 0 at least one log was read, 2 wrong usage or no log that can be read, 130 stopped.
    """
    chosen = choose_format(format, output, ["text", "html", "json"])
    found = list(dict.fromkeys(str(log) for path in paths for log in logs(path)))
    if not found:
        fail(f"there is no event log in {', '.join(map(str, paths))}")
    if query and len(found) > 1:
        fail("--query: only for a single log")
    check_outputs("advise", [("--output", output), ("--policies", policies)], found, force)
    kept = default_folder() if resume and len(found) > 1 else None
    results = read_all(found, query or [], processes, kept)
    advice = collected(_all(results, found, is_kept=kept is not None))
    if not advice.applications:
        raise ApportionError("; ".join(map(str, advice.unread[:5])))
    with writing(output) as console:
        if chosen == "json":
            text = json_text("advise", advice.as_json())
        else:
            text = (render.html if chosen == "html" else render.text)(advice, top)
        console.write(text)
    if policies:
        written = from_advice(advice)
        is_json = policies.suffix == ".json"
        with writing(policies) as console:
            console.write(written.to_json() if is_json else POLICIES_MARK + written.to_yaml())
        rules = count_text(len(written.rules), "rule")
        note(f"{rules} written to {policies}")
        if unmatched := count_unmatched(advice):
            note(
                f"Left out: {count_text(unmatched, 'query')}. The logs have no fingerprint and no "
                "table for a rule. Run the queries with Apportion to log fingerprints.",
            )
    if output:
        for unread in advice.unread:
            note(f"Not read: {unread.log}: {unread.reason}")


def _all(
    results: Generator[ApplicationAdvice | Unread, None, None], logs: Sequence[str], is_kept: bool
) -> list[ApplicationAdvice | Unread]:
    """Return all results. Ends the command if it is stopped by Ctrl-C."""
    done: list[ApplicationAdvice | Unread] = []
    try:
        for _ in counted(logs, "Reading"):
            done.append(next(results))
    except KeyboardInterrupt:
        results.close()
        continues = ". Run the same command again to continue" if is_kept else ""
        fail(f"stopped after {len(done):,} of {count_text(len(logs), 'log')}{continues}", _STOPPED)
    return done

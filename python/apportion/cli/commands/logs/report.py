"""`apportion report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apportion.cli.support.console import fail, note, writing
from apportion.cli.support.options import Force, Output, OutputFormat, Processes, choose_format
from apportion.cli.support.outputs import check_outputs, json_text
from apportion.cli.support.progress import counted
from apportion.errors import ApportionError
from apportion.logs.eventlog.input.files import STANDARD_INPUT, logs
from apportion.logs.report import render
from apportion.logs.report.comparison import compare
from apportion.logs.report.runs import read_all

EXAMPLES = """\
More examples:

- `apportion report /var/log/spark/may /var/log/spark/june`: compare all jobs of two months
"""


def report_command(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="Event log, or directory with event logs.")
    ],
    after: Annotated[
        Path, typer.Argument(metavar="AFTER", help="Event log, or directory with event logs.")
    ],
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of queries in each list of the text.")
    ] = 20,
    processes: Processes = None,
    format: OutputFormat = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Compare queries in event logs from before and after a change.

    Applications are matched by name. Queries are matched by the operators, tables and columns of
    their plans, and otherwise by description. Literals and numbers may differ.

    Regressions come first: queries that are slower by more than 5 % and at least 1 s, and not by
    chance. A regression needs five runs on both sides, and at most 10 % more scanned bytes.

    Exit codes: 0 compared, 2 wrong usage, or a side without a log that can be read.
    """
    chosen = choose_format(format, output, ["text", "json"])
    if str(before) in STANDARD_INPUT and str(after) in STANDARD_INPUT:
        fail("BEFORE and AFTER are both standard input, which can be read once")
    found = [list(map(str, logs(path))) for path in (before, after)]
    for path, side in zip((before, after), found, strict=True):
        if not side:
            fail(f"there is no event log in {path}")
    names = [*found[0], *found[1]]
    check_outputs("report", [("--output", output)], names, force)
    results = read_all(names, processes)
    read = [next(results) for _ in counted(names, "Reading")]
    comparison = compare(read[: len(found[0])], read[len(found[0]) :])
    for each in (comparison.before, comparison.after):
        if not each.logs:
            raise ApportionError("; ".join(map(str, each.unread[:5])))
    with writing(output) as console:
        if chosen == "json":
            console.write(json_text("report", comparison.as_json()))
        else:
            console.write(render.text(comparison, top))
    if output:
        for unread in [*comparison.before.unread, *comparison.after.unread]:
            note(f"Not read: {unread.log}: {unread.reason}")

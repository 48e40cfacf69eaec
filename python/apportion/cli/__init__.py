"""The `apportion` command."""

from __future__ import annotations

import importlib.metadata
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
import typer.core

from apportion.cli import (
    bench,
    demo,
    doctor,
    jar,
    keys,
    lint,
    run,
    settings,
    slots,
)
from apportion.cli.logs import advise, explain, report, simulate
from apportion.cli.support.console import QUERY_FAILED, USAGE_ERROR, fail
from apportion.errors import ApportionError, QueryError

_EXAMPLES = """\
Examples:

- `apportion demo`: see Apportion work on generated data
- `apportion run query.sql --tables data/`: run your SQL and show each decision
- `apportion run query.sql --tables data/ --compare`: compare with Spark alone
- `apportion run query.sql --tables data/ --set data_volume_per_task=16MB`: try a setting
- `apportion bench query.sql --tables data/`: time your SQL with and without Apportion
- `apportion explain query.sql --tables data/`: show stages, their tasks and the reasons
- `apportion explain LOG`: show the same for finished queries, from Spark's event log
- `apportion advise LOGS`: find stages that waste time, in logs with or without Apportion
- `apportion report BEFORE AFTER`: compare the same queries in logs from before and after a change
- `apportion simulate LOG --slots 160`: predict finished queries with other slots or settings
- `apportion slots query.sql --tables data/`: show the slots that a query needs, without running it
- `apportion keys events --columns tenant --tasks 16 --tables data/`: show how keys spread over \
tasks
- `apportion lint queries/`: find SQL hints that Spark ignores or rejects
- `apportion settings`: list all settings
- `apportion doctor`: check the installation
- `spark-submit --jars $(apportion jar) --conf \
spark.sql.extensions=io.apportion.ApportionExtension app.py`: add Apportion to any Spark program

`apportion COMMAND --help` shows what a command prints.
"""


class _Commands(typer.core.TyperGroup):
    """Prints errors that the user can fix without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _quiet():
                return super().invoke(ctx)
        except ApportionError as error:
            fail(str(error), QUERY_FAILED if isinstance(error, QueryError) else USAGE_ERROR)


@contextmanager
def _quiet() -> Iterator[None]:
    # pyspark logs query errors with their Java stack, and warns about its own imports. The commands
    # report errors themselves.
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"apportion {importlib.metadata.version('apportion')}")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=_EXAMPLES,
)


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Apportion sets the number of tasks for every shuffle in a Spark SQL query, and explains it.

    To start, run `apportion demo`. Then run your own SQL with `apportion run`.
    """


app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("bench", epilog=bench.EXAMPLES)(bench.bench)
app.command("lint")(lint.lint_command)
app.command("explain", epilog=explain.EXAMPLES)(explain.explain)
app.command("advise", epilog=advise.EXAMPLES)(advise.advise_command)
app.command("report", epilog=report.EXAMPLES)(report.report_command)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate_command)
app.command("slots", epilog=slots.EXAMPLES)(slots.slots_command)
app.command("keys", epilog=keys.EXAMPLES)(keys.keys_command)
app.command("settings")(settings.settings)
app.command("jar")(jar.jar)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)

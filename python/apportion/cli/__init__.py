"""The `apportion` command."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import io
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from apportion.cli.support.console import QUERY_FAILED, USAGE_ERROR, fail, quiet
from apportion.errors import ApportionError, QueryError
from apportion.redaction import printable, without_secrets

_EXAMPLES = """\
Examples:

- `apportion demo`: see Apportion work on generated data
- `apportion run query.sql --tables data/ --compare`: also run Spark alone
- `apportion run query.sql --tables data/ --set mode=active`: try a setting
- `apportion advise LOGS`: find stages that waste time, in any event logs
"""


# Shells add the number of a signal to it, so that Ctrl-C has 130.
_STOPPED = 128
_SIGNALS = ("SIGTERM", "SIGHUP")

# Modules of the commands, by the titles of the help. Most people need only the first.
_GROUPS = {
    "Start here": ("run", "logs.explain", "logs.advise", "lint", "doctor"),
    "Measure and compare": ("demo", "bench", "logs.report", "logs.simulate"),
    "Slots, streams and keys": ("slots", "logs.streams", "keys"),
    "Configure": ("policies", "settings", "jar"),
}
_COMMANDS = {
    module.rpartition(".")[2]: (module, group)
    for group, modules in _GROUPS.items()
    for module in modules
}


class _Commands(typer.core.TyperGroup):
    """Imports only the command that is called, and prints errors of the user without a traceback.

    All commands together import most of the package, which takes longer than many of them.
    """

    def main(self, *arguments: Any, **options: Any) -> Any:
        # Terminals without UTF-8 lack some characters of plots and of the user's own text.
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        return super().main(*arguments, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # It would name the current directory.
        if "" in args:
            place = args.index("")
            # Other words than the names of options can be secrets.
            before = re.fullmatch(r"--?[a-z-]+", args[max(place - 1, 0)])
            name = f"the argument after {before[0]}" if before else f"argument {place + 1}"
            fail(f"{name} is empty: give it a value")
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _COMMANDS:
            return _command(cmd_name)
        # Typer looks here for similar names.
        self.commands = {name: _command(name) for name in _COMMANDS}
        return None

    def invoke(self, ctx: Any) -> Any:
        sys.excepthook = _print_traceback
        try:
            with quiet(), _stopped_by_signals():
                return super().invoke(ctx)
        except ApportionError as error:
            fail(str(error), QUERY_FAILED if isinstance(error, QueryError) else USAGE_ERROR)
        except KeyboardInterrupt as stopped:
            # A command can say how to go on.
            message = (
                f"stopped `apportion {ctx.invoked_subcommand}`. Run the same command again to "
                "start over"
            )
            fail(str(stopped) or message, _STOPPED + getattr(stopped, "number", signal.SIGINT))


@functools.cache
def _command(name: str) -> Any:
    module_name, group = _COMMANDS[name]
    module = importlib.import_module(f"apportion.cli.commands.{module_name}")
    single = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    make = single.command(name, epilog=getattr(module, "EXAMPLES", None), rich_help_panel=group)
    make(getattr(module, f"{name}_command"))
    return typer.main.get_command(single)


class _Signalled(KeyboardInterrupt):
    """A stop by another signal than Ctrl-C."""

    number = signal.SIGINT


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Stop as Ctrl-C does when a terminal is closed or the process is ended.

    Python would end at once, and leave files and Spark behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: object) -> None:
        stopped = _Signalled()
        stopped.number = signal.Signals(number)
        raise stopped

    # Windows has no SIGHUP.
    numbers = [signal.Signals[name] for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        # nohup ignores SIGHUP.
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_traceback(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    # Messages of other packages can have the URL of a server with its token.
    text = "".join(traceback.format_exception(kind, error, trace))
    print(printable(without_secrets(text)), end="", file=sys.stderr)


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
    """Set the number of tasks for every shuffle of Spark SQL, and explain it.

    Start with `apportion run`. `apportion COMMAND --help` has more about a command.
    """

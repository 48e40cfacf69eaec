"""`apportion doctor`."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated

import typer
from rich.padding import Padding
from rich.text import Text

from apportion._util.units import count_text
from apportion.cli.support.console import fail, out
from apportion.cli.support.options import Format
from apportion.cli.support.progress import waiting
from apportion.cli.support.spark_session import start
from apportion.doctor import Finding, Verdict, examine, examine_server, prove
from apportion.errors import ApportionError, SettingError
from apportion.settings import find

EXAMPLES = """\
More examples:

- `apportion doctor --conf spark.jars=lib/apportion.jar`: check with the conf of your spark-submit
- `apportion doctor --remote sc://localhost`: check a Spark Connect server
"""

_PROBLEM_FOUND = 1
_COLORS: dict[Verdict, str] = {"ok": "green", "warning": "yellow", "problem": "bold red"}
# The test query needs no cluster.
_LOCAL = "local[2]"
_HERE = (f"spark.master={_LOCAL}", "spark.submit.deployMode=client")
_NOT_STARTED = Finding("Session", "Spark was not started", "warning", "fix the problems first")


def doctor_command(
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            "--set",
            metavar="KEY=VALUE",
            help="Conf of your programs, as for spark-submit. Repeatable.",
        ),
    ] = None,
    remote: Annotated[
        str | None,
        typer.Option(
            metavar="sc://HOST", help="Check a Spark Connect server instead of this machine."
        ),
    ] = None,
    is_started: Annotated[
        bool,
        typer.Option(
            "--start/--no-start",
            help="If there is no problem so far, start Spark on this machine and run a query.",
        ),
    ] = True,
    format: Format = "text",
) -> None:
    """Find problems that keep Apportion from working.

    The doctor checks Python, Java, Spark, Apportion's jars, the conf (--conf, PYSPARK_SUBMIT_ARGS,
    spark-defaults.conf) and other extensions. Then it starts Spark, and checks that Apportion makes
    a decision for a small query.

    Exit codes: 0 no problem (warnings do not count), 1 a problem was found, 2 wrong usage.
    """
    for wrong in [entry for entry in conf or [] if "=" not in entry]:
        fail(f"--conf {wrong}: write KEY=VALUE")
    pairs = (entry.split("=", 1) for entry in conf or [])
    given = {_key(name): value for name, value in pairs}
    if remote and given:
        fail("--conf has no effect with --remote: the Spark Connect server has its own conf")
    if remote:
        with waiting(f"Running a query on {remote}"):
            findings = examine_server(remote)
    else:
        findings = examine(given)
        if is_started:
            findings += _session(given) if _are_fine(findings) else [_NOT_STARTED]
    _show(findings, format)
    if not _are_fine(findings):
        raise typer.Exit(_PROBLEM_FOUND)


def _key(name: str) -> str:
    """Return the key of a setting that is named as for the option --set of other commands."""
    try:
        return find(name).key
    except SettingError:
        return name


def _are_fine(findings: list[Finding]) -> bool:
    return all(finding.verdict != "problem" for finding in findings)


def _session(given: dict[str, str]) -> list[Finding]:
    try:
        spark = start(None, [*(f"{key}={value}" for key, value in given.items()), *_HERE])
        with waiting("Running a query"):
            return prove(spark)
    except ApportionError as error:
        return [Finding("Session", _LOCAL, "problem", str(error))]


def _show(findings: list[Finding], format: str) -> None:
    if format == "json":
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=2))
        return
    for finding in findings:
        verdict = (f"{finding.verdict:<8}", _COLORS[finding.verdict])
        out.print(Text.assemble(verdict, (finding.check, "bold")))
        for text in filter(None, (finding.looked_at, finding.advice)):
            # Advice can be copied, so that it has no line breaks in names.
            out.print(Padding(Text(text, overflow="fold"), (0, 0, 0, 8)))
    verdicts = [finding.verdict for finding in findings]
    problems, warnings = verdicts.count("problem"), verdicts.count("warning")
    counts = f"{count_text(problems, 'problem')}, {count_text(warnings, 'warning')}"
    out.print(f"{count_text(len(findings), 'check')}: {counts}")

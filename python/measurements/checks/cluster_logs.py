"""Predict what Apportion would change in event logs of clusters.

    python -m measurements cluster-logs logs/*

A log counts if Spark ran on a cluster with adaptive execution, and if Apportion would decide a
stage of its queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from apportion import eventlog
from apportion.cli.support.progress import counted
from apportion.errors import ApportionError
from apportion.logs.advise.model.stages import ADAPTIVE, SparkConfs
from apportion.logs.eventlog import Application
from apportion.logs.simulate import Scenario, simulate
from apportion.settings import ENABLED
from measurements import raw

WITH = Scenario("with Apportion", {ENABLED: "true"})


def row(name: str, application: Application) -> raw.Row | None:
    """Return the row of a log, or None if it does not count."""
    confs = SparkConfs(application)
    if confs.is_local or not confs.flag(ADAPTIVE):
        return None
    try:
        logged, replayed, predicted = simulate(application, [WITH]).rows
    except ApportionError:
        return None
    if all(stage.is_as_logged for outcome in predicted.outcomes for stage in outcome.stages):
        return None
    return {
        "log": name,
        "spark": application.spark_version,
        "slots": logged.total.slots,
        "queries": len(logged.outcomes),
        "measured": f"{logged.total.makespan:.2f}",
        "replayed": f"{replayed.total.makespan:.2f}",
        "predicted": f"{predicted.total.makespan:.2f}",
        "tasks": logged.total.tasks,
        "predicted_tasks": predicted.total.tasks,
    }


def rows(logs: Sequence[str]) -> Iterator[raw.Row]:
    """Yield the rows of the logs that count."""
    for log in counted(logs, "Logs"):
        try:
            application = eventlog.read(log)
        except ApportionError:
            continue
        if found := row(Path(log).name, application):
            yield found


def main(
    logs: Annotated[
        list[str], typer.Argument(help="Event logs. Those that do not count are left out.")
    ],
    folder: raw.Folder = raw.FOLDER,
) -> None:
    """Predict what Apportion would change in event logs of clusters."""
    found = list(rows(logs))
    if not found:
        raise ApportionError(
            f"none of {len(logs)} logs counts: Apportion would change no query of a cluster"
        )
    versions = ", ".join(sorted({str(each["spark"]) for each in found}))
    raw.write("cluster-logs", {**raw.version("simulated"), "spark": versions}, found, folder)

"""Finds the event log of an application: by path, id, or the address of its UI."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from apportion._util.paths import found
from apportion.errors import ApportionError, did_you_mean
from apportion.eventlog import history_server
from apportion.eventlog.history_server import RunningApplication

# Where Spark writes and its history server reads, if they are not told otherwise.
_DEFAULT_LOGS = "/tmp/spark-events"
_HISTORY_LOGS = "-Dspark.history.fs.logDirectory="
_LOG = re.compile(r"(eventlog_v2_)?(?P<id>[^.]+?)(\.\w+)*")


@contextmanager
def event_log(what: str, logs: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Give the event log that `what` names, for the block.

    That is its path; the URL of a history server's application, whose log is downloaded, or of a
    running application's UI, whose log is read where it is written; or the id of an application
    whose log is in `logs`, by default the history server's directory.

    Raises `ApportionError` where there is none.
    """
    if what.startswith(("http://", "https://")):
        with history_server.application(what) as told:
            yield _of_running(told) if isinstance(told, RunningApplication) else told
    elif found(what):
        yield Path(what)
    elif "/" in what:
        raise ApportionError(f"there is no event log at {what}")
    else:
        yield _in_logs(what, Path(logs) if logs else history_logs())


def history_logs() -> Path:
    """Return where the history server reads logs: as SPARK_HISTORY_OPTS says, or the default."""
    options = shlex.split(os.environ.get("SPARK_HISTORY_OPTS", ""))
    told = [each.removeprefix(_HISTORY_LOGS) for each in options if each.startswith(_HISTORY_LOGS)]
    return _directory(told[-1] if told else _DEFAULT_LOGS, "spark.history.fs.logDirectory")


def _of_running(application: RunningApplication) -> Path:
    name = f"the application {application.id} at {application.url}"
    if application.conf.get("spark.eventLog.enabled", "false").lower() != "true":
        raise ApportionError(
            f"{name} writes no event log, and a UI alone does not tell what was decided from "
            "which bytes: start it with spark.eventLog.enabled=true and spark.eventLog.dir set to "
            "a directory that can be read from here"
        )
    directory = _directory(
        application.conf.get("spark.eventLog.dir", _DEFAULT_LOGS), f"spark.eventLog.dir of {name}"
    )
    return _in_logs(application.id, directory)


def _directory(place: str, setting: str) -> Path:
    parts = urlsplit(place)
    if parts.scheme not in ("", "file"):
        raise ApportionError(
            f"{setting} is {place}, which is not on this machine: give the URL of a history server "
            "that reads it, http://HOST:18080/history/ID, or copy the log and give its path"
        )
    return Path(unquote(parts.path) if parts.scheme else place)


def _in_logs(application: str, directory: Path) -> Path:
    if not directory.is_dir():
        raise ApportionError(
            f"there is no event log {application}, and no directory {directory} to look for an "
            "application of that id in: name the directory of its log"
        )
    written = _as_written(application)
    logs = [each for each in directory.iterdir() if not each.name.startswith(".")]
    # An attempt has its number behind the id.
    own = [each for each in logs if re.fullmatch(rf"{re.escape(written)}(_\d+)?", _id(each))]
    if not own:
        nearest = did_you_mean(written, map(_id, logs))
        raise ApportionError(
            f"there is no event log {application}, and none of an application of that id among "
            f"the {len(logs)} in {directory}.{nearest}"
        )
    return max(own, key=lambda each: each.stat().st_mtime)


def _id(log: Path) -> str:
    match = _LOG.fullmatch(log.name)
    return match["id"] if match else log.name


def _as_written(application: str) -> str:
    """An id as Spark makes a file's name of it."""
    return re.sub(r"[.${}'\"]", "_", re.sub(r"[ :/]", "-", application)).lower()

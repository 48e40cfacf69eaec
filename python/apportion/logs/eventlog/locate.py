"""Locations of event logs: by path, application id, or URL of a UI or history server."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from apportion._util.paths import existing_path
from apportion._util.units import count_text
from apportion.errors import ApportionError, did_you_mean
from apportion.logs.eventlog import history_server
from apportion.logs.eventlog.history_server import RunningApplication
from apportion.logs.eventlog.input.files import STANDARD_INPUT, is_log_name

# Default directory of both Spark (spark.eventLog.dir) and its history server.
_SQL = ("SELECT ", "WITH ", "FROM ", "INSERT ")
_DEFAULT_LOGS = "/tmp/spark-events"
_HISTORY_LOGS = "-Dspark.history.fs.logDirectory="
_LOG = re.compile(r"(eventlog_v2_)?(?P<id>[^.]+?)(\.\w+)*")


@contextmanager
def event_log(what: str, logs: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """Yield the path of an event log, which is valid within the block.

    `what` is one of:

    - the path of the log, or `-` for standard input
    - the URL of an application on a history server, whose log is downloaded
    - the URL of a running application's UI, whose log is read from the path that it writes to
    - the id of an application with a log in `logs`, by default the history server's directory

    Raises `ApportionError` if there is no such log.
    """
    if what.startswith(("http://", "https://")):
        with history_server.application(what) as answer:
            yield _running_log(answer) if isinstance(answer, RunningApplication) else answer
    elif what in STANDARD_INPUT or existing_path(what):
        yield Path(what)
    elif "/" in what:
        raise ApportionError(f"there is no event log at {what}")
    else:
        yield _find_log(what, Path(logs) if logs else history_logs())


def history_logs() -> Path:
    """Return the history server's directory: from SPARK_HISTORY_OPTS, or the default."""
    text = os.environ.get("SPARK_HISTORY_OPTS", "")
    try:
        options = shlex.split(text)
    except ValueError as error:
        raise ApportionError(
            f"SPARK_HISTORY_OPTS is {text} ({error}): write options as in a shell"
        ) from None
    directories = [
        option.removeprefix(_HISTORY_LOGS) for option in options if option.startswith(_HISTORY_LOGS)
    ]
    return _directory(
        directories[-1] if directories else _DEFAULT_LOGS, "spark.history.fs.logDirectory"
    )


def _running_log(application: RunningApplication) -> Path:
    name = f"the application {application.id} at {application.url}"
    if application.conf.get("spark.eventLog.enabled", "false").lower() != "true":
        raise ApportionError(
            f"{name} writes no event log, and its UI alone does not have the decisions: start it "
            "with spark.eventLog.enabled=true, and with spark.eventLog.dir set to a directory that "
            "this machine can read"
        )
    directory = _directory(
        application.conf.get("spark.eventLog.dir", _DEFAULT_LOGS), f"spark.eventLog.dir of {name}"
    )
    return _find_log(application.id, directory)


def _directory(place: str, setting: str) -> Path:
    try:
        parts = urlsplit(place)
    except ValueError as error:
        raise ApportionError(f"{setting} is {place}, which is not a URL ({error})") from None
    if parts.scheme not in ("", "file"):
        raise ApportionError(
            f"{setting} is {place}, which is not on this machine: give the URL of a history server "
            "for that directory, http://HOST:18080/history/ID, or copy the log and give its path"
        )
    return Path(unquote(parts.path) if parts.scheme else place)


def _find_log(application: str, directory: Path) -> Path:
    if application.upper().startswith(_SQL):
        raise ApportionError(
            f"there is no event log {application!r}: for SQL, name a file that ends in .sql, or - "
            "for standard input"
        )
    # A conf can have a text that is no path.
    if not existing_path(str(directory)) or not directory.is_dir():
        raise ApportionError(
            f"there is no event log {application}, and no directory {directory} to search for an "
            "application with that id: give the directory of its log"
        )
    name = _file_name(application)
    try:
        logs = [log for log in directory.iterdir() if is_log_name(log.name)]
    except OSError as error:
        raise ApportionError(f"{directory} cannot be read: {error.strerror}") from error
    # The log of an attempt has the number of the attempt after the id.
    matching = [log for log in logs if re.fullmatch(rf"{re.escape(name)}(_\d+)?", _id(log))]
    if not matching:
        nearest = did_you_mean(name, map(_id, logs))
        raise ApportionError(
            f"there is no event log {application}, and no application with that id among the "
            f"{count_text(len(logs), 'log')} in {directory}.{nearest}"
        )
    # Spark renames a log at its end, and a link can have no target.
    return max(matching, key=lambda log: log.stat().st_mtime if log.exists() else 0)


def _id(log: Path) -> str:
    match = _LOG.fullmatch(log.name)
    return match["id"] if match else log.name


def _file_name(application: str) -> str:
    """Return the file name that Spark makes from an application id."""
    return re.sub(r"[.${}'\"]", "_", re.sub(r"[ :/]", "-", application)).lower()

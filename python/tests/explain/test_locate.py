"""Where logs are found: by id in a directory, or by the address of a UI or a history server."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import socket
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apportion import ApportionError
from apportion._util.units import size_text
from apportion.logs.eventlog import history_server, locate
from tests.mutations import SEEDS, bounded, with_other_bytes, with_other_values


class Spark:
    """A server that answers as Spark does: below `/api/v1/`, and with pages elsewhere."""

    def __init__(self) -> None:
        self.answers: dict[str, bytes] = {}
        answers = self.answers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_api = self.path.startswith(("/api/", "/proxied/api/", "/closed/"))
                found = answers.get(self.path, None if is_api else b"<!DOCTYPE html>")
                self.send_response(200 if found else 401 if "closed" in self.path else 404)
                self.end_headers()
                self.wfile.write(found or b"")

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.http.server_port}"

    def lists(self, *ids: str, below: str = "", attempt: str | None = None) -> None:
        applications = [{"id": number, "attempts": [{"attemptId": attempt}]} for number in ids]
        self.says(f"{below}/api/v1/applications", applications)
        for each in applications:
            self.says(f"{below}/api/v1/applications/{each['id']}", each)

    def runs(self, number: str, below: str = "", **conf: str) -> None:
        """Have it be the UI of an application, which sends a zip without logs."""
        self.lists(number, below=below)
        self.answers[f"{below}/api/v1/applications/{number}/logs"] = packed({})
        properties = [[f"spark.eventLog.{name}", value] for name, value in conf.items()]
        self.says(
            f"{below}/api/v1/applications/{number}/environment", {"sparkProperties": properties}
        )

    def says(self, path: str, answer: Any) -> None:
        self.answers[path] = json.dumps(answer).encode()


@pytest.fixture
def spark_ui(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spark]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Spark()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.http.shutdown()
    thread.join()
    server.http.server_close()


def packed(files: dict[str, str], method: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as made:
        for name, text in files.items():
            made.writestr(name, text)
    return content.getvalue()


def found(what: str, logs: Path | None = None) -> str:
    with locate.event_log(what, logs) as log:
        return log.name


def error(what: str, logs: Path | None = None) -> str:
    with pytest.raises(ApportionError) as raised, locate.event_log(what, logs):
        pass
    return str(raised.value)


# By id


@pytest.mark.parametrize(
    "name",
    [
        "app-1",
        "app-1.zstd",
        "app-1.inprogress",
        "app-1_2.zstd.inprogress",
        "eventlog_v2_app-1",
        "eventlog_v2_app-1_1",
    ],
)
def test_a_log_is_found_by_application_id(tmp_path: Path, name: str) -> None:
    for other in ("app-10", "app-1_x", "eventlog_v2_app-10", ".app-1.crc", name):
        (tmp_path / other).touch()
    assert found("app-1", tmp_path) == name


def test_the_log_of_the_latest_attempt_is_found(tmp_path: Path) -> None:
    for attempt, written in ((1, 300), (2, 500), (3, 400)):
        (tmp_path / f"app-1_{attempt}").touch()
        os.utime(tmp_path / f"app-1_{attempt}", (written, written))
    assert found("app-1", tmp_path) == "app-1_2"


def test_an_id_with_special_characters_is_found(tmp_path: Path) -> None:
    (tmp_path / "my-app_1").touch()
    assert found("My App.1", tmp_path) == "my-app_1"


def test_the_directory_of_the_history_server_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app-1").touch()
    monkeypatch.delenv("SPARK_HISTORY_OPTS", raising=False)
    assert locate.history_logs() == Path("/tmp/spark-events")
    option = f"-Dspark.history.fs.logDirectory=file://{tmp_path}"
    monkeypatch.setenv("SPARK_HISTORY_OPTS", f"-Dspark.history.ui.port=1 {option}")
    assert found("app-1") == "app-1"
    monkeypatch.setenv("SPARK_HISTORY_OPTS", "-Dspark.history.fs.logDirectory=s3a://logs")
    assert "spark.history.fs.logDirectory is s3a://logs, which is not on this" in error("app-1")


def test_a_missing_log_raises(tmp_path: Path) -> None:
    (tmp_path / "app-20261121-0001.zstd").touch()
    assert error(f"{tmp_path}/none") == f"there is no event log at {tmp_path}/none"
    assert error("app-20261121-0002", tmp_path).endswith(
        f"among the 1 log in {tmp_path}. Did you mean app-20261121-0001?"
    )
    assert f"no directory {tmp_path}/none to search" in error("app-1", tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-Dx='a", "SPARK_HISTORY_OPTS is -Dx='a (No closing quotation)"),
        ("-Dspark.history.fs.logDirectory=file://[a", "is file://[a, which is not a URL"),
    ],
)
def test_options_of_the_history_server_that_cannot_be_read_raise(
    monkeypatch: pytest.MonkeyPatch, options: str, message: str
) -> None:
    monkeypatch.setenv("SPARK_HISTORY_OPTS", options)
    assert message in error("app-1")


def test_a_link_without_a_target_is_not_the_newest_log(tmp_path: Path) -> None:
    (tmp_path / "app-1").symlink_to(tmp_path / "none")
    assert found("app-1", tmp_path) == "app-1"
    (tmp_path / "app-1_1").touch()
    assert found("app-1", tmp_path) == "app-1_1"


def test_a_directory_of_logs_that_cannot_be_read_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert error("app-1", tmp_path) == f"{tmp_path} cannot be read: Permission denied"


# By URL


def test_the_log_of_a_running_application_is_found(spark_ui: Spark, tmp_path: Path) -> None:
    (tmp_path / "app-1.inprogress").touch()
    spark_ui.runs("app-1", enabled="true", dir=tmp_path.as_uri())
    for page in ("", "/", "/jobs/", "/SQL/execution/?id=3", "/apportion/query/?id=3#x"):
        assert found(spark_ui.root + page) == "app-1.inprogress"


def test_the_log_of_a_running_application_behind_a_proxy_is_found(
    spark_ui: Spark, tmp_path: Path
) -> None:
    (tmp_path / "app-1").touch()
    spark_ui.runs("app-1", below="/proxied", enabled="true", dir=str(tmp_path))
    assert found(f"{spark_ui.root}/proxied/SQL/") == "app-1"
    assert "does not list applications" in error(f"{spark_ui.root}/other")


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({}, "writes no event log, and its UI alone does not have the decisions"),
        (
            {"enabled": "false"},
            "start it with spark.eventLog.enabled=true, and with spark.eventLog.dir",
        ),
        ({"enabled": "true", "dir": "hdfs://logs"}, "is hdfs://logs, which is not on this machine"),
        ({"enabled": "true", "dir": "/no/where"}, "no directory /no/where to search"),
        ({"enabled": "true", "dir": "/no" * 2000}, "/no/no to search for an application"),
    ],
)
def test_a_running_application_without_a_readable_log_raises(
    spark_ui: Spark, conf: dict[str, str], message: str
) -> None:
    spark_ui.runs("app-1", **conf)
    assert message in error(spark_ui.root)


def test_a_log_is_downloaded_from_a_history_server(spark_ui: Spark) -> None:
    spark_ui.lists("app-2", "app-1")
    logs = packed({"eventlog_v2_app-1/events_1_app-1": "{}", "eventlog_v2_app-1/appstatus": ""})
    spark_ui.answers["/api/v1/applications/app-1/logs"] = logs
    with locate.event_log(f"{spark_ui.root}/history/app-1/jobs/") as log:
        assert [each.name for each in log.iterdir()] == ["eventlog_v2_app-1"]
    assert not log.exists()
    assert error(spark_ui.root) == (
        f"{spark_ui.root} has 2 applications: choose one with {spark_ui.root}/history/ID. "
        "Newest: app-2, app-1"
    )
    assert error(f"{spark_ui.root}/history/app-3").endswith("has no application app-3")


def test_each_attempt_on_a_history_server_has_its_log(spark_ui: Spark) -> None:
    spark_ui.lists("app-1", attempt="2")
    for attempt in (1, 2):
        logs = packed({f"app-1_{attempt}": "{}"})
        spark_ui.answers[f"/api/v1/applications/app-1/{attempt}/logs"] = logs
    for page, name in (("", "app-1_2"), ("/1/SQL/", "app-1_1")):
        with locate.event_log(f"{spark_ui.root}/history/app-1{page}") as log:
            assert [each.name for each in log.iterdir()] == [name]


def test_an_address_without_a_spark_ui_raises(spark_ui: Spark) -> None:
    assert "http:/// has no host" in error("http:///")
    assert f"no Spark UI or history server at {spark_ui.root}" in error(spark_ui.root)
    assert "requires a login (401 Unauthorized)" in error(f"{spark_ui.root}/closed")
    spark_ui.says("/api/v1/applications", [])
    assert error(spark_ui.root) == f"{spark_ui.root} has no applications yet"
    spark_ui.says("/api/v1/applications", ["no application"])
    assert "does not list applications" in error(spark_ui.root)


def test_an_address_without_a_server_raises() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert "does not answer: [Errno 111] Connection refused" in error(url)


@pytest.mark.parametrize(
    ("size", "free"), [(100_000, 10_000), (5_000_000, 100_000)], ids=["archive", "unpacked"]
)
def test_a_download_larger_than_the_free_space_raises(
    spark_ui: Spark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, size: int, free: int
) -> None:
    content = random.Random(1).randbytes(size).hex() if size == 100_000 else "x" * size
    spark_ui.lists("app-1")
    spark_ui.answers["/api/v1/applications/app-1/logs"] = packed(
        {"app-1": content}, zipfile.ZIP_DEFLATED
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    message = error(spark_ui.root)
    assert f"has more than {size_text(free // 2)}, which is half of the free space" in message
    assert message.endswith(f"in {tmp_path}: set TMPDIR to a folder with more free space")
    assert list(tmp_path.iterdir()) == []


def test_an_answer_that_is_too_long_raises(
    spark_ui: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_server, "_MAX_JSON", 20)
    spark_ui.lists("app-1")
    assert "has more than 20 B, which is the maximum" in error(spark_ui.root)


def damaged(content: bytes, place: int, value: bytes) -> bytes:
    """The archive with other bytes in one place, counted from the end if it is negative."""
    start = place % len(content)
    return content[:start] + value + content[start + len(value) :]


DEFLATED = packed({"app-1": "x" * 1000}, zipfile.ZIP_DEFLATED)
# The places of the fields follow from the format: the first local header has 30 bytes and a name.
CENTRAL = DEFLATED.index(b"PK\x01\x02")
ARCHIVES = {
    "data": damaged(DEFLATED, 36, b"\xff" * 5),
    "checksum": damaged(DEFLATED, CENTRAL + 16, b"\0\0\0\0"),
    "encrypted": damaged(damaged(DEFLATED, 6, b"\1"), CENTRAL + 8, b"\1"),
    "method": damaged(damaged(DEFLATED, 8, b"\x63"), CENTRAL + 10, b"\x63"),
    "directory": damaged(DEFLATED, CENTRAL, b"XX"),
    "long name": packed({"x" * 300: ""}),
    "two kinds": packed({"a": "", "a/b": ""}),
}


@pytest.mark.parametrize("archive", ARCHIVES.values(), ids=ARCHIVES)
def test_an_archive_that_cannot_be_unpacked_raises(spark_ui: Spark, archive: bytes) -> None:
    spark_ui.lists("app-1")
    spark_ui.answers["/api/v1/applications/app-1/logs"] = archive
    url = f"{spark_ui.root}/api/v1/applications/app-1/logs"
    message = error(spark_ui.root)
    assert message.startswith(f"the archive at {url} cannot be unpacked: ")
    assert len(message) < 500


@pytest.mark.parametrize(
    "listed",
    [
        b'[{"id": "app-1", "attempts": [5]}]',
        b'[{"id": "app-1", "attempts": {"0": {}}}]',
        b'[{"id": ["app-1"], "attempts": [{}]}]',
        b'[{"id": "app-1", "attempts": [' + b"[" * 100_000,
        b'[{"id": ' + b"[" * 15_000 + b"]" * 15_000 + b', "attempts": [{}]}]',
    ],
    ids=["attempt", "attempts", "id", "endless", "deep"],
)
def test_an_answer_of_another_form_raises(spark_ui: Spark, listed: bytes) -> None:
    spark_ui.answers["/api/v1/applications"] = listed
    assert "does not list applications" in error(spark_ui.root)


def test_a_conf_of_another_form_raises(spark_ui: Spark) -> None:
    spark_ui.runs("app-1")
    deep = b'{"sparkProperties": [["a", ' + b"[" * 15_000 + b"]" * 15_000 + b"]]}"
    for conf in (deep, b"[1]", b'{"sparkProperties": [1]}'):
        spark_ui.answers["/api/v1/applications/app-1/environment"] = conf
        assert "does not report the path of its event log" in error(spark_ui.root)


@SEEDS
def test_answers_with_other_content_raise_no_other_error(
    spark_ui: Spark, tmp_path: Path, seeds: range
) -> None:
    spark_ui.runs("app-1", enabled="true", dir=str(tmp_path))
    (tmp_path / "app-1").touch()
    right = dict(spark_ui.answers)
    archive = packed({"eventlog_v2_app-1/events_1_app-1": "x" * 1000}, zipfile.ZIP_DEFLATED)
    for draw in bounded(seeds):
        spark_ui.answers.clear()
        spark_ui.answers.update(right)
        if draw.random() < 0.5:
            spark_ui.answers["/api/v1/applications/app-1/logs"] = archive
        path = draw.choice(sorted(spark_ui.answers))
        if path.endswith("logs") or draw.random() < 0.3:
            spark_ui.answers[path] = with_other_bytes(draw, spark_ui.answers[path])
        else:
            spark_ui.says(path, with_other_values(draw, json.loads(spark_ui.answers[path])))
        url = draw.choice([spark_ui.root, f"{spark_ui.root}/history/app-1"])
        with contextlib.suppress(ApportionError), locate.event_log(url):
            pass


def test_downloaded_files_stay_in_their_directory(spark_ui: Spark) -> None:
    spark_ui.lists("app-1")
    spark_ui.answers["/api/v1/applications/app-1/logs"] = packed({"../../app-1": "{}"})
    with locate.event_log(spark_ui.root) as log:
        assert [each.name for each in log.iterdir()] == ["app-1"]

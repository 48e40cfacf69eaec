"""Ctrl-C and other signals: a command ends at once, and says how to go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from typer.testing import CliRunner

from apportion._spark import jars
from apportion.bench import measure
from apportion.bench.suites import skew
from apportion.cli import app
from apportion.cli.commands import bench

_MOST_SECONDS = 120


def stop(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """Start a command as a terminal does: all its processes are one group."""
    return subprocess.Popen(
        [sys.executable, "-m", "apportion", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(happened: Callable[[], object]) -> None:
    for _ in range(_MOST_SECONDS * 10):
        if happened():
            return
        time.sleep(0.1)
    raise AssertionError("the command did not come so far")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_other_signals_stop_as_ctrl_c_does(
    number: signal.Signals, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A shell may have started the tests with nohup, which ignores SIGHUP.
    before = signal.default_int_handler
    inherited = signal.signal(number, before)
    monkeypatch.setattr(jars, "find", lambda: os.kill(os.getpid(), number))
    try:
        result = CliRunner().invoke(app, ["jar"])
        assert signal.getsignal(number) is before
    finally:
        signal.signal(number, inherited)
    assert result.exit_code == code
    assert "stopped `apportion jar`" in result.stderr


def test_tables_are_not_left_half_generated(tmp_path: Path) -> None:
    command = start("demo", "--scale", "5", "--data", tmp_path)
    # DuckDB is generating: its own threads do not see the signal.
    wait_for(lambda: list(tmp_path.glob(".tpch-sf5-*/generated.duckdb")))
    os.killpg(command.pid, signal.SIGINT)
    _, message = command.communicate(timeout=_MOST_SECONDS)
    assert command.returncode == 130
    assert message.endswith("tables were generated. Run the same command again to start over\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("spark")
class TestOnSpark:
    @pytest.mark.parametrize(
        ("sql", "message"),
        [
            ("SELECT 1", "stopped statement 1 of 1 (line 1). Run the same command again to start"),
            (
                "SELECT 1;\nSELECT 2",
                "stopped statement 2 of 2 (line 2). The statements before it have run: run the "
                "rest of the file to go on",
            ),
        ],
    )
    def test_run_names_the_statement(
        self, sql: str, message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = measure.run

        def run_all_but_the_last(session: object, statement: str, head: int) -> object:
            return run(session, statement, head) if sql.find(statement + ";") >= 0 else stop()  # type: ignore[arg-type]

        monkeypatch.setattr(measure, "run", run_all_but_the_last)
        result = CliRunner().invoke(app, ["run", "-"], input=sql)
        assert result.exit_code == 130
        assert message in " ".join(result.stderr.split())

    def test_bench_names_the_query_and_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(bench, "run_query", stop)
        result = CliRunner().invoke(app, ["bench", "-", "--warmups", "0"], input="SELECT 1")
        assert result.exit_code == 130
        assert "stopped while query <stdin>:1 ran. bench-stdin.json has" in " ".join(
            result.stderr.split()
        )
        assert (tmp_path / "bench-stdin.json").exists()

    def test_demo_names_the_query(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(measure, "compare", stop)
        # Warms up, and generates tables of another suite.
        monkeypatch.setattr(measure, "run", lambda *_: None)
        monkeypatch.setattr(skew, "generate", lambda *_: tmp_path / "tpch-sf0.001")
        result = CliRunner().invoke(
            app, ["demo", "--scale", "0.001", "--queries", "1", "--data", str(tmp_path)]
        )
        assert result.exit_code == 130
        assert "stopped while query 100 map tasks ran. Run the same command again" in " ".join(
            result.stderr.split()
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("run", "stopped statement 1 of 1 (line 1)"),
        ("explain", "stopped `apportion explain`"),
        ("bench --warmups 0", "stopped while query long:1 ran. bench-long.json has the queries"),
        ("bench --warmups 0 --memory 1g", "stopped. bench-long-1g.json has the queries"),
    ],
)
def test_a_running_query_is_stopped(
    command: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    # It would run for hours.
    Path("long.sql").write_text(
        "SELECT count(*) FROM range(1000000000) a JOIN range(1000000) b ON a.id % 7 = b.id % 7"
    )
    name, *options = command.split()
    conf = {"master": "local[2]", "eventLog.enabled": "true", "eventLog.compress": "false"}
    assignments = [f"--set=spark.{key}={value}" for key, value in conf.items()]
    run = start(name, "long.sql", *options, *assignments, f"--set=spark.eventLog.dir={logs}")
    wait_for(lambda: any("JobStart" in file.read_text() for file in logs.rglob("events_*")))
    os.killpg(run.pid, signal.SIGINT)
    shown, printed = run.communicate(timeout=_MOST_SECONDS)
    assert (run.returncode, shown) == (130, "")
    assert message in " ".join(printed.split())
    assert "Traceback" not in printed
    # Spark ends with its driver.
    wait_for(lambda: not _runs(run.pid))


def _runs(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True

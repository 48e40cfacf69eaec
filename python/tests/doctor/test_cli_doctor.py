"""`apportion doctor`: its output, its exit codes, and when it starts Spark."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.connect import client
from typer.testing import CliRunner, Result

from apportion import doctor
from apportion._spark import jars
from apportion.cli import app
from apportion.doctor import server
from tests.programs import without_spark

from .conftest import JAR, Machine

EXTENSION = "io.apportion.ApportionExtension"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments], env={"COLUMNS": "200"})


# Without Spark


@pytest.mark.usefixtures("machine")
def test_doctor_prints_each_check_and_a_count() -> None:
    result = call("--no-start")
    assert result.exit_code == 0, result.stderr
    checks = ["Python", "Java", "Spark", "Jar", "Extension", "Adaptive execution", "Settings"]
    lines = result.stdout.splitlines()
    assert [line.removeprefix("ok ").strip() for line in lines if line[:3] == "ok "] == checks
    assert lines[-1] == "7 checks: 0 problems, 0 warnings"
    assert result.stderr == ""


def test_doctor_exits_with_1_and_does_not_start_spark_after_a_problem(machine: Machine) -> None:
    machine.java("11.0.27")
    result = call()
    assert result.exit_code == 1
    assert "Java 11.0.27" in result.stdout
    assert "problem" in result.stdout
    assert "fix the problems first" in result.stdout


@pytest.mark.usefixtures("machine")
def test_a_setting_with_its_short_name_is_checked() -> None:
    conf = f"spark.sql.extensions={EXTENSION}"
    result = call("--no-start", "--conf", conf, "--set", "mode=observe")
    assert "Apportion only records decisions" in result.stdout


def test_doctor_prints_json(machine: Machine) -> None:
    ours = machine.folder / "ours" / JAR
    result = call("--no-start", "--format", "json", "--conf", f"spark.jars={ours}")
    assert result.exit_code == 1
    *_, extension, adaptive, settings = json.loads(result.stdout)
    assert extension == {
        "check": "Extension",
        "looked_at": "spark.sql.extensions is not set",
        "verdict": "problem",
        "advice": "nothing loads Apportion, so it makes no decisions. Use "
        f"--conf spark.sql.extensions={EXTENSION}",
    }
    assert (adaptive["verdict"], settings["verdict"]) == ("ok", "ok")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--conf", "spark.jars"], "--conf spark.jars: write KEY=VALUE"),
        (
            ["--remote", "localhost:15002"],
            "localhost:15002 is not a Spark Connect URL: write sc://HOST",
        ),
        (["--remote", "sc://x:port"], "sc://x:port is not a Spark Connect URL"),
        (["--remote", "sc://x:99999"], "sc://x:99999 is not a Spark Connect URL"),
        (["--remote", "sc://a..b"], "sc://a..b is not a Spark Connect URL"),
        (["--remote", "sc://x", "--conf", "a=b"], "--conf has no effect with --remote"),
        (["--format", "xml"], "'xml' is not one of"),
    ],
)
def test_wrong_usage_exits_with_2_and_a_message(arguments: list[str], message: str) -> None:
    result = call(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_spark_connect_server_that_does_not_answer_is_a_problem() -> None:
    with socket.socket() as unused:
        unused.bind(("localhost", 0))
        port = unused.getsockname()[1]
        result = call("--remote", f"sc://localhost:{port}", "--format", "json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)
    assert (finding["check"], finding["looked_at"]) == ("Server", f"sc://localhost:{port}")
    assert "the server does not answer" in finding["advice"]


@pytest.mark.parametrize("version", ["3.5", "4.3"])
def test_a_server_of_another_protocol_is_a_problem(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version == "3.5":
        monkeypatch.setattr(client, "ChannelBuilder", client.DefaultChannelBuilder)
        monkeypatch.delattr(client, "DefaultChannelBuilder")
    monkeypatch.setattr(server, "_SECONDS_TO_ANSWER", 1)
    with socket.socket() as silent:
        silent.bind(("localhost", 0))
        silent.listen()
        port = silent.getsockname()[1]
        result = call("--remote", f"sc://localhost:{port}", "--format", "json")
    (finding,) = json.loads(result.stdout)
    assert "does not answer as a Spark Connect server" in finding["advice"]


# On the session of the tests


def test_doctor_runs_a_query_and_shows_its_decision(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    result = call("--format", "json")
    assert result.exit_code == 0, result.stdout
    findings = {finding["check"]: finding for finding in json.loads(result.stdout)}
    assert (
        f"a query on Spark {spark.version}: HashAggregate: 1 task"
        in (findings["Session"]["looked_at"])
    )
    assert findings["Loaded from"]["looked_at"] == jars.find().as_uri().replace("///", "/")


def test_a_session_without_decisions_is_a_problem(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    problems = {
        finding.check: finding
        for finding in doctor.examine_session(session)
        if finding.verdict == "problem"
    }
    assert problems.keys() == {"Adaptive execution", "Session"}
    assert "(the session)" in problems["Adaptive execution"].looked_at
    assert "log for 'which goes on with Spark's own plan'" in problems["Session"].advice


def test_an_unknown_setting_of_a_session_is_a_problem(spark: SparkSession) -> None:
    session = spark.newSession()
    session.conf.set("spark.apportion.minParalelism", "2")
    (problem,) = (each for each in doctor.examine_session(session) if each.verdict == "problem")
    assert "Did you mean spark.apportion.minParallelism?" in problem.advice


# In a process that starts Spark


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=without_spark(**environment),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_two_copies_of_the_jar_with_different_names_are_a_problem(tmp_path: Path) -> None:
    copy = tmp_path / "renamed.jar"
    copy.write_bytes(jars.find().read_bytes())
    finished = run(
        f"""
        from apportion.cli import app
        app(["doctor", "--format", "json", "--conf", "spark.jars={copy},{jars.find()}"])
        """,
        PYSPARK_SUBMIT_ARGS=f"--conf spark.sql.extensions={EXTENSION} pyspark-shell",
    )
    assert finished.returncode == 1, finished.stderr
    (problem,) = (each for each in json.loads(finished.stdout) if each["verdict"] == "problem")
    assert problem["check"] == "Loaded from"
    assert str(copy) in problem["looked_at"]
    assert "keep one" in problem["advice"]


@pytest.mark.slow
@pytest.mark.usefixtures("connect")
def test_a_spark_connect_server_without_the_extension_is_a_problem() -> None:
    finished = run("""
    from pyspark.sql import SparkSession
    from apportion.cli import app
    SparkSession.builder.remote("local[1]").getOrCreate()
    app(["doctor", "--remote", "sc://localhost", "--format", "json"])
    """)
    assert finished.returncode == 1, finished.stderr
    findings = {finding["check"]: finding for finding in json.loads(finished.stdout)}
    assert findings["Extension"]["verdict"] == "problem"
    assert (
        "the Spark Connect server runs without Apportion's extension"
        in (findings["Session"]["advice"])
    )


@pytest.mark.usefixtures("connect")
def test_a_spark_connect_server_with_the_extension_has_no_problems() -> None:
    finished = run("""
    import apportion
    from apportion.cli import app
    from pyspark.sql import SparkSession
    apportion.configure(SparkSession.builder.remote("local[1]")).getOrCreate()
    app(["doctor", "--remote", "sc://localhost", "--format", "json"])
    """)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    *_, session = json.loads(finished.stdout)
    assert "HashAggregate: 1 task" in session["looked_at"]

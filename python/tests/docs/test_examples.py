"""Every example of every page runs; contributing.md says what becomes of each kind."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pyspark.sql import SparkSession

from apportion._spark import jars
from apportion._spark.jvm import EXTENSION
from apportion.cli import app
from apportion.doctor import configuration, properties
from apportion.doctor.conf import Conf, Entry
from apportion.doctor.finding import Setup
from apportion.settings import registry
from apportion.sql.statements import split
from apportion.testing.run import ScriptRun
from apportion.testing.script import parse

from .outputs import pages_of_programs
from .pages import BLOCKS, LOG, PAGES, ROOT, Block, blocks, commands

CLI: Any = typer.main.get_command(app)
COMMANDS: dict[str, Any] = {name: CLI.get_command(None, name) for name in CLI.list_commands(None)}
# `console` is what typer writes into the reference of the command line.
LANGUAGES = {"bash", "console", "properties", "python", "sql", "text", "toml", "yaml"}


def test_every_code_block_has_a_known_language() -> None:
    assert [block.name for block in BLOCKS if block.language not in LANGUAGES] == []


def test_the_worked_example_of_a_setting_is_in_the_code() -> None:
    code = "\n".join(file.read_text("utf-8") for file in ROOT.glob("jvm/src/*/scala/**/*.scala"))
    known = {line.strip() for line in code.splitlines()}
    shown = [b.text for b in blocks("text") if b.page == "contributing.md" and "roadcast" in b.text]
    assert len(shown) == 4
    assert [line for text in shown for line in text.split("\n") if line.strip() not in known] == []


# Python


def programs(makes_sessions: bool) -> list[Any]:
    """Return the Python of each page, and whether it makes sessions of its own."""
    texts = {
        page.name: "\n".join(block.text for block in blocks("python") if block.page == page.name)
        for page in PAGES
    }
    # test_outputs.py runs the others.
    shown = pages_of_programs()
    return [
        pytest.param(text, id=name)
        for name, text in texts.items()
        if text and name not in shown
        if makes_sessions == bool(re.search(r"^spark = ", text, re.MULTILINE))
    ]


@pytest.mark.parametrize("text", programs(makes_sessions=False))
def test_python_examples_run_on_a_session(
    text: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(text, {"spark": spark.newSession(), "log": LOG})


@pytest.mark.parametrize("text", programs(makes_sessions=True))
def test_python_examples_run_as_a_program(text: str, tmp_path: Path) -> None:
    program = tmp_path / "example.py"
    program.write_text(text, "utf-8")
    run = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# SQL


@pytest.fixture(scope="module")
def sessions(spark: SparkSession) -> Callable[[str], SparkSession]:
    """A session for each page."""
    made: dict[str, SparkSession] = {}
    return lambda page: made.setdefault(page, spark.newSession())


@pytest.mark.parametrize("block", blocks("sql"), ids=lambda block: block.name)
def test_sql_examples_run(
    block: Block, spark: SparkSession, sessions: Callable[[str], SparkSession]
) -> None:
    if "-- name:" in block.text:
        script = parse(block.text, block.name)
        run = ScriptRun(script, block.name, spark)
        for test in script.statements:
            run.run(test)
        return
    for statement in split(block.text):
        error = re.search("-- error: (.*)", statement.text)
        if error:
            with pytest.raises(Exception, match=re.escape(error[1])):
                sessions(block.page).sql(statement.text).collect()
        else:
            sessions(block.page).sql(statement.text).collect()


# Commands


def of_program(*programs: str) -> list[Any]:
    return [pytest.param(words, id=name) for name, words in commands() if words[0] in programs]


SUBMITTING = ("spark-submit", "spark-sql", "spark-shell", "pyspark")


def test_every_command_example_is_tested() -> None:
    known = {"apportion", "make", "pip", "pytest", *SUBMITTING}
    assert [(name, words[0]) for name, words in commands() if words[0] not in known] == []


@pytest.mark.parametrize("words", of_program("apportion"))
def test_apportion_accepts_the_command_examples(words: list[str]) -> None:
    COMMANDS[words[1]].make_context(words[1], words[2:])


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS.values() if each.epilog], ids=lambda each: each.name
)
def test_apportion_accepts_the_examples_of_its_help(command: Any) -> None:
    examples = re.findall(r"`apportion (.*?)`", command.epilog)
    assert examples
    for name, *words in map(shlex.split, examples):
        assert name == command.name
        command.make_context(name, words)


@pytest.mark.parametrize("words", of_program("pip"))
def test_pip_examples_name_existing_extras(words: list[str]) -> None:
    _, install, *options, package = words
    (version,) = re.findall(r'version := "(.*)"', (ROOT / "build.sbt").read_text("utf-8"))
    wheel = re.escape(f"dist/apportion-{version}-py3-none-any.whl")
    extras = re.fullmatch(rf"(?:apportion|\.|{wheel})(?:\[(.*)\])?", package)
    assert install == "install"
    assert options in ([], ["-e"])
    assert extras
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    for extra in (extras[1] or "").split(","):
        assert not extra or re.search(rf"^{extra} = \[", project, re.MULTILINE)


@pytest.mark.parametrize("words", of_program("make"))
def test_make_examples_name_existing_targets(words: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = [word for word in words[1:] if "=" not in word]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


@pytest.fixture(scope="module")
def pytest_help() -> str:
    command = [sys.executable, "-m", "pytest", "--help"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("words", of_program("pytest"))
def test_pytest_examples_name_existing_options(words: list[str], pytest_help: str) -> None:
    for word in words[1:]:
        if word.startswith("-"):
            assert re.search(rf"^  {word}\b", pytest_help, re.MULTILINE)


@pytest.mark.parametrize("words", of_program(*SUBMITTING))
def test_spark_submit_examples_set_jar_and_extension(words: list[str], spark: SparkSession) -> None:
    program, *options = (word.replace("$(apportion jar)", str(jars.find())) for word in words)
    # What the other programs add to their options, and hand to spark-submit.
    added = [] if program == "spark-submit" else ["spark-internal"]
    jvm: Any = spark._jvm
    arguments = jvm.org.apache.spark.deploy.SparkSubmitArguments(
        jvm.PythonUtils.toSeq(["--class", "Main", *options, *added]),
        jvm.PythonUtils.toScalaMap({"HADOOP_CONF_DIR": "/etc/hadoop"}),
    )
    assert jars.parse_name(Path(arguments.jars()).name)
    extensions = arguments.sparkProperties().get("spark.sql.extensions").get()
    assert EXTENSION in extensions.split(",")


# Configuration


@pytest.mark.parametrize("block", blocks("properties"), ids=lambda block: block.name)
def test_properties_examples_have_valid_settings(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text(block.text)
    entries = [Entry(key, value, "") for key, value, _ in properties.read(file)]
    assert len(entries) == len(block.text.splitlines())
    findings = list(configuration.settings(Setup(Conf(entries))))
    assert [finding for finding in findings if finding.verdict != "ok"] == []


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: block.name)
def test_toml_examples_can_be_parsed(block: Block) -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no tomllib")
    assert tomllib.loads(block.text)


# What stands in the text


def test_commands_named_in_the_text_exist() -> None:
    named = {
        name
        for page in PAGES
        for name in re.findall(r"`apportion ([a-z]+)", page.read_text("utf-8"))
    }
    assert named <= COMMANDS.keys()


def test_settings_named_in_the_text_exist() -> None:
    known = {setting.key for setting in registry().values()}
    named = {
        (page.name, key)
        for page in PAGES
        for key in re.findall(r"`(spark\.apportion\.[\w.]+)", page.read_text("utf-8"))
    }
    assert {(page, key) for page, key in named if key not in known} == set()

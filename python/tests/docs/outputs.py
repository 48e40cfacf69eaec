"""The output that pages show, and the commands that print it; contributing.md has the rules."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from apportion.bench.suites import tpc
from apportion.cli import app
from apportion.cli.support import console
from apportion.sql.statements import split

from .pages import LOG, PAGES, ROOT

_OUTPUT = re.compile(
    r"<!-- output: (?P<command>.*?)(?: \((?P<options>[^()]*)\))? -->\n```text\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(
    r"<!-- file: (?P<name>\S+) -->\n```\w+\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_WIDTH = "200"
# Tables that `apportion demo` leaves.
_TPCH = "~/.cache/apportion/tpch-sf0.1"
_ON_SPARK = {"bench", "explain", "keys", "run", "slots"}
_PRINTED: dict[tuple[Path, str], str] = {}


class Output(NamedTuple):
    """A block of output in a page."""

    page: Path
    command: str
    options: frozenset[str]
    """`numbers vary`, `second run`, `slow`, and the width of the terminal: `COLUMNS=100`."""
    text: str
    before: str
    """The page above the block."""


def outputs() -> list[Output]:
    return [
        Output(
            page,
            found["command"],
            frozenset(filter(None, re.split(r",\s*", found["options"] or ""))),
            found["text"],
            text[: found.start()],
        )
        for page in PAGES
        for text in [page.read_text("utf-8")]
        for found in _OUTPUT.finditer(text)
    ]


def pages_of_programs() -> set[str]:
    """Return the pages that show what their Python prints, which `run` then runs."""
    return {output.page.name for output in outputs() if output.command == "the Python above"}


def run(output: Output, folder: Path, spark: SparkSession) -> list[str]:
    """Return the lines that the command of a block prints. `folder` is empty."""
    if output.command == "the SQL above" or output.command.startswith("SELECT "):
        printed = _run_sql(output, spark.newSession())
    elif output.command == "the Python above":
        printed = _run_python(output, folder, spark)
    else:
        # Blocks with one command show parts of what it prints.
        command = output.page, output.command
        if command not in _PRINTED:
            _prepare(output.page, folder)
            _PRINTED[command] = _run_command(output, folder, spark)
        printed = _PRINTED[command]
    return printed.splitlines()


def _prepare(page: Path, folder: Path) -> None:
    for found in _FILE.finditer(page.read_text("utf-8")):
        file = folder / found["name"]
        file.parent.mkdir(exist_ok=True)
        file.write_text(found["text"], "utf-8")
    (folder / "data").mkdir()
    items = "".join(f"{i},{i % 10}\n" for i in range(1000))
    (folder / "data/items.csv").write_text(f"id,bucket\n{items}", "utf-8")


def _run_command(output: Output, folder: Path, spark: SparkSession) -> str:
    words = shlex.split(output.command.replace("~", str(Path.home())))
    if " python/" in output.command:
        (folder / "python").symlink_to(ROOT / "python")
    if _TPCH in output.command:
        tpc.generate("tpch", 0.1, Path(_TPCH).expanduser().parent)
    if words[0] == "apportion":
        if words[1] in _ON_SPARK and "second run" not in output.options:
            return _run_on(spark, words[1:], folder, output)
        words[:1] = [sys.executable, "-m", "apportion"]
    if "second run" in output.options:
        _run(words, folder, output)
    return _run(words, folder, output, check=False)


def _run_on(spark: SparkSession, words: list[str], folder: Path, output: Output) -> str:
    """Run a command of Apportion on a session of this process. To start Spark takes seconds."""
    # The JVM has another working directory.
    words = [f"{folder}/{word}" if word == "data/" else word for word in words]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(SparkSession, "_instantiatedSession", spark.newSession())
        patch.setattr(console.out, "width", int(_width(output)))
        result = CliRunner().invoke(app, words)
    return result.stdout + result.stderr


def _run_python(output: Output, folder: Path, spark: SparkSession) -> str:
    program = "\n".join(_PYTHON.findall(output.page.read_text("utf-8")))
    if "spark = " in program:
        (folder / "example.py").write_text(program, "utf-8")
        return _run([sys.executable, "example.py"], folder, output)
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(folder)
        exec(program, {"spark": spark.newSession(), "log": LOG})
    return printed.getvalue()


def _run(words: list[str], folder: Path, output: Output, *, check: bool = True) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "COLUMNS": _width(output), "MASTER": "local[2]"}
    run = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0 or not check, run.stderr
    return run.stdout + run.stderr


def _width(output: Output) -> str:
    return next((each[8:] for each in output.options if each.startswith("COLUMNS=")), _WIDTH)


def _run_sql(output: Output, session: SparkSession) -> str:
    """Run the statements above the block. Return the rows of the last one, or of a SELECT."""
    statements = [each.text for block in _SQL.findall(output.before) for each in split(block)]
    if output.command.startswith("SELECT "):
        statements.append(output.command)
    *before, last = statements
    for statement in before:
        session.sql(statement).collect()
    frame = session.sql(last)
    if len(frame.columns) == 1:
        return "\n".join(str(row[0]) for row in frame.collect())
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        frame.show(truncate=False)
    return printed.getvalue()


def without_numbers(line: str) -> str:
    """Return a line without what differs between runs: numbers, units, widths and bars."""
    line = re.sub(r"\d[\d.,]*", "0", line)
    line = re.sub(r"0 ?(B|KiB|MiB|GiB|ms|s|min)\b", "0", line)
    line = re.sub(r"[▁▂▃▄▅▆▇█|]+", "▁", line)
    return re.sub(r"([━─ -])\1+", r"\1", line).replace(" ", "")


def missing(shown: str, printed: list[str], options: frozenset[str]) -> list[str]:
    """Return the parts of a block that a command did not print. A line `...` separates parts."""
    clean = without_numbers if "numbers vary" in options else str.rstrip
    text = "\n".join(["", *map(clean, printed), ""])
    parts = re.split(r"^ *\.\.\.$", shown, flags=re.MULTILINE)
    cleaned = ["\n".join(map(clean, part.strip("\n").splitlines())) for part in parts]
    return [part for part in cleaned if part and f"\n{part}\n" not in text]

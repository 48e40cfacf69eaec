"""Wrong commands end with exit code 2 and one message, in any terminal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from apportion.cli import app

LOG = Path(__file__).parent / "eventlog/golden/spark-4.2.zstd"

# Arguments of a command, and a part of its message. All of them run in a folder with `FILES`.
COMMANDS = [
    # The command itself.
    ("", "Usage"),
    ("rum", "Did you mean 'run'?"),
    ("advize x", "Did you mean 'advise'?"),
    ("--verison", "No such option: --verison"),
    ("explain ''", "argument 2 is empty: give it a value"),
    ("bench tpch --output ''", "the argument after --output is empty: give it a value"),
    ("'' --version", "argument 1 is empty: give it a value"),
    ("run --set=password=x ''", "argument 3 is empty: give it a value"),
    # SQL files.
    ("run", "Missing argument"),
    ("run quary.sql", "there is no file quary.sql. Did you mean query.sql?"),
    ("run 'SELECT 1'", "there is no file SELECT 1."),
    ("run .", ". is a directory: name an SQL file"),
    ("run empty.sql", "there is no SQL statement to run"),
    ("run latin.sql", "cannot read latin.sql: byte 8 is not UTF-8"),
    ("run query.sql -o x.txt", "No such option: -o"),
    ("run query.sql --rows -1", "Invalid value for '--rows'"),
    ("run query.sql --rows many", "Invalid value for '--rows'"),
    ("run query.sql --format xml", "'xml' is not one of 'text', 'json'"),
    ("run query.sql --set", "Option '--set' requires an argument"),
    ("run query.sql --set parallelism", "'parallelism' has no value: write NAME=VALUE"),
    ("run query.sql --set paralelism=4", "Did you mean parallelism?"),
    ("run query.sql --set parallelism=0", "parallelism is 0: allowed is 1 or more"),
    ("run query.sql --set parallelism=viele→", "parallelism is 'viele"),
    ("run query.sql --set data_volume_per_task=16XB", "data_volume_per_task is '16XB'"),
    ("run query.sql --set ranges=evn", "ranges is 'evn': allowed is one of even, balanced"),
    ("run query.sql --tables none", "there is no directory none (--tables)"),
    ("run query.sql --tables query.sql", "query.sql"),
    ("run query.sql --tables s3://bucket/x", "s3://bucket/x"),
    ("slots none.sql", "there is no file none.sql"),
    ("slots query.sql --slots 0", "Invalid value for '--slots'"),
    ("keys t --tasks 4", "Missing option '--columns'"),
    ("keys t --columns a --tasks 0", "Invalid value for '--tasks'"),
    ("keys t --columns a --tasks 8 --subpartitions 4", "--subpartitions is 4: allowed is 8"),
    ("keys t --columns a --tasks 8 --plot a.gif", "must end in .png or .svg"),
    # Benchmarks and the demo.
    ("bench", "name a suite (tpch, tpcds, skew) or SQL files"),
    ("bench tpcx", "Did you mean tpch?"),
    ("bench tpch skew", "the suite tpch cannot be combined"),
    ("bench tpch --scale 0", "scale is 0: allowed is above 0"),
    ("bench tpch --scale -1", "scale is -1: allowed is above 0"),
    ("bench tpch --queries 99", "tpch has no query '99'"),
    ("bench tpch --variants spark,evn", "unknown variant 'evn'. Did you mean even?"),
    ("bench tpch --variant x", "--variant x: write NAME:KEY=VALUE"),
    ("bench tpch --rounds 0", "Invalid value for '--rounds'"),
    ("bench tpch -o all.html", "--output all.html: the name must end in .json"),
    ("bench --from none.json", "cannot read none.json: No such file or directory"),
    ("bench --from broken.json", "broken.json is not complete JSON"),
    ("bench --from query.sql", "query.sql is not complete JSON"),
    ("bench query.sql --scale 2", "--scale is only for the suites"),
    ("bench write.sql", "write.sql: statement 1 (line 1) is not a query"),
    ("demo --scale 1e5000", "scale is inf: allowed is above 0, up to 100,000"),
    ("demo --scale 200000", "scale is 200000: allowed is above 0, up to 100,000"),
    ("demo --queries 23", "--queries 23: write numbers from 1 to 22"),
    ("demo --data query.sql/x", "cannot create query.sql/x for generated tables"),
    (f"demo --data {'x' * 300}", "for generated tables: File name too long"),
    # Event logs.
    ("explain none", "no event log none"),
    ("explain 'SELECT 1'", "for SQL, name a file that ends in .sql, or - for standard input"),
    ("explain query.hql", "has no queries"),
    ("explain http://", "http:// has no host"),
    ("explain http://user:HIDDEN@localhost:1/", "localhost"),
    ("explain {log} --query 99", "has no query 99"),
    ("explain {log} --query one", "Invalid value for '--query'"),
    ("explain {log} --tables .", "--tables: only for SQL"),
    ("explain query.sql --logs .", "--logs: only for a log"),
    ("explain {log} --logs .", "--logs: only for an application id"),
    ("explain {log} --format pdf", "'pdf' is not one of"),
    ("explain {log} -o none/x.html", "cannot write none/x.html: No such file or directory"),
    ("explain {log} -o .", "cannot write .: Is a directory"),
    ("advise none", "none"),
    ("advise empty", "empty/readme.txt: it has no event of Spark"),
    ("advise {log} --top 0", "Invalid value for '--top'"),
    ("advise {log} {log2} --query 1", "--query: only for a single log"),
    ("report {log}", "Missing argument"),
    ("report - /dev/stdin", "BEFORE and AFTER are both standard input"),
    ("report {log} empty", "empty/readme.txt: it has no event of Spark"),
    ("simulate none", "there is no event log at none"),
    ("simulate {log} --slots 0", "slots is 0"),
    ("simulate {log} --slots 999999999999", "slots is 999999999999"),
    ("simulate {log} --scale 0", "scale is 0: allowed is above 0"),
    ("simulate {log} --lose 5", "lose is '5': write EXECUTORS@SECONDS"),
    ("simulate {log} --lose x@1", "lose is 'x@1': write EXECUTORS@SECONDS"),
    ("simulate {log} --scenario few", "--scenario few: write NAME:KEY=VALUE"),
    ("simulate {log} --scenario few:slot=8", "slot"),
    ("simulate {log} -o x.html", "--output x.html: the name must end in .json or .txt"),
    ("streams none", "there is no checkpoint, journal or event log at none"),
    ("streams {log}", "log has no stateful stream"),
    ("streams s3://bucket/orders", "s3://bucket/orders is not on this machine"),
    ("streams {log} --slots 0", "Invalid value for '--slots'"),
    ("streams {log} --every 0", "Invalid value for '--every'"),
    ("streams {log} --follow --format json", "--follow: not with --policy"),
    ("streams {log} -o x.html", "--output x.html: the name must end in .json or .txt"),
    # Hints, settings and the doctor.
    ("lint", "Missing argument"),
    ("lint none.sql", "cannot read none.sql: No such file or directory"),
    ("lint empty", "empty contains no .sql files"),
    ("lint latin.sql", "cannot read latin.sql: byte 8 is not UTF-8"),
    ("lint query.sql --ignore APH9", "unknown code APH9."),
    ("lint query.sql --format yaml", "'yaml' is not one of"),
    ("settings paralelism", "Did you mean parallelism?"),
    ("settings --format yaml", "'yaml' is not one of"),
    ("doctor --conf spark.x", "--conf spark.x: write KEY=VALUE"),
    ("doctor --remote sc://h --conf a=b", "--conf has no effect with --remote"),
    ("doctor --remote http://me:HIDDEN@h", "is not a Spark Connect URL"),
]  # fmt: skip

FILES = {
    "query.sql": b"SELECT 1",
    "write.sql": b"DELETE FROM t",
    "empty.sql": b"-- nothing",
    "latin.sql": b"SELECT '\xe9'",
    "query.hql": b"SELECT 1",
    "broken.json": b'{"format": ',
    "empty/readme.txt": b"",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("folder")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    for name in ("log", "log2"):
        shutil.copy(LOG, folder / name)
    return folder


def call(command: str, charset: str) -> Result:
    quoted = re.findall(r"'([^']*)'|(\S+)", command.format(log="log", log2="log2"))
    arguments = [one or other for one, other in quoted]
    return CliRunner(charset=charset).invoke(app, arguments, env={"COLUMNS": "80"})


@pytest.mark.parametrize("charset", ["utf-8", "latin-1"])
@pytest.mark.parametrize(("command", "message"), COMMANDS, ids=[text for text, _ in COMMANDS])
def test_a_wrong_command_is_one_message(
    command: str, message: str, charset: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    result = call(command, charset)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2
    # The frame of a message has lines.
    text = " ".join(re.sub(r"[\u2500-\u257f|+]|-{5,}", " ", result.output).split())
    assert message in text
    assert "Traceback" not in text
    assert "HIDDEN" not in text
    assert len(re.findall(r"\bError\b", text)) <= 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("charset", ["latin-1", "ascii"])
@pytest.mark.parametrize("command", ["--help", "explain log", "simulate log", "advise log"])
def test_terminals_without_utf_8_get_other_characters(
    command: str, charset: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    result = call(command, charset)
    assert (result.exit_code, result.exception) == (0, None)


def test_the_catalogue_has_at_least_60_commands() -> None:
    assert len(COMMANDS) >= 60

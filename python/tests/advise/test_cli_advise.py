from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
import zstandard
from typer.testing import CliRunner, Result

from apportion.cli import app
from apportion.logs.advise import reading, render
from apportion.logs.advise.advice import advise, collected, read
from apportion.logs.advise.model.findings import Advice, ApplicationAdvice
from apportion.logs.eventlog import Unread

from .applications import MB, application, stage

GOLDEN = Path(__file__).parents[1] / "eventlog/golden/spark-4.2.zstd"


def advise_logs(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["advise", *map(str, arguments)])


def sample(name: str = "nightly", logs: int = 1) -> Advice:
    millis = [20_000] * 2
    made = application(stage(1, millis, slots=2, shuffle_read_bytes=[512 * MB] * 2), cores=16)
    made.name = name
    return collected([advise(made, f"log {number}") for number in range(logs)])


def test_a_gain_on_an_old_version_of_spark_needs_an_upgrade() -> None:
    millis = [20_000] * 2
    made = application(
        stage(1, millis, slots=2, shuffle_read_bytes=[512 * MB] * 2), cores=16, version="3.3.1"
    )
    made.skipped.append("a line that is not an event")
    shown = render.text(collected([advise(made, "log")]), 20)
    assert "With Apportion, on a supported Spark: up to 17.5 s" in " ".join(shown.split())
    assert "Note: left out: a line that is not an event." in shown


def test_advise_shows_a_log_without_findings() -> None:
    result = advise_logs(GOLDEN)
    assert result.exit_code == 0, result.stderr
    assert f"golden ({GOLDEN})" in result.stdout.replace("\n", " ")
    assert "Nothing found." in result.stdout


def test_advise_reads_a_directory_and_lists_unreadable_logs(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/app-1.zstd").write_bytes(GOLDEN.read_bytes())
    (tmp_path / "logs/app-2").write_text("no events\n")
    result = advise_logs(tmp_path, "--processes", "1")
    assert result.exit_code == 0
    assert "1 log could not be read:" in result.stdout
    assert "app-2: it has no event of Spark" in " ".join(result.stdout.split())


def test_advise_prints_json_with_all_fields(tmp_path: Path) -> None:
    content = json.loads(advise_logs(GOLDEN, "--format", "json").stdout)
    assert content.pop("format") == "apportion advise 1"
    assert set(content) == {"gain", "with_apportion", "jobs", "applications", "unread"}
    assert content["applications"][0]["queries"][0]["findings"] == []
    finding = sample().as_json()["applications"][0]["queries"][0]["findings"][0]
    assert finding["kind"] == "large-tasks"
    assert finding["decided"]["tasks"] == 16
    assert finding["gain"]["seconds_high"] == 17.5
    assert finding["stage"] == 1


def test_advise_chooses_a_query_and_writes_a_file(tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    result = advise_logs(GOLDEN, "--query", "1", "--format", "html", "-o", page)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "<title>Advice for golden</title>" in page.read_text("utf-8")
    assert "Nothing found." in page.read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "there is no event log at none"),
        ([str(GOLDEN), "--query", "9"], "has no query 9. Known queries: 0 to 2"),
        ([str(GOLDEN), str(GOLDEN.with_name("spark-4.1.zstd")), "--query", "1"], "single log"),
        ([str(GOLDEN), "--top", "0"], "greater than or equal to 1"),
        ([__file__], "it has no event of Spark"),
        ([str(GOLDEN), "-o", "no/such/place"], "cannot write no/such/place: "),
    ],
)
def test_wrong_usage_exits_with_2_and_a_message(arguments: list[str], message: str) -> None:
    result = advise_logs(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_an_empty_directory_exits_with_2(tmp_path: Path) -> None:
    result = advise_logs(tmp_path)
    assert result.exit_code == 2
    assert "there is no event log in" in result.stderr


def test_text_has_the_finding_with_its_numbers() -> None:
    shown = render.text(sample(), 20)
    assert "  * Too few, large tasks: 2 tasks where 16 could run" in shown
    assert "    Query 0: the daily report, stage 1: HashAggregate" in shown
    assert "Possible saving: up to 17.5 s, or 4.7 core-minutes." in shown
    assert "- keys with more values, because few shuffle partitions have" in shown
    assert "These two lines" not in shown


def test_text_has_at_most_80_columns_and_no_ellipsis() -> None:
    name = "a job with a rather long name that does not fit into the column of its table"
    shown = render.text(sample(name, logs=3), 20)
    assert max(map(len, shown.splitlines())) <= 80
    assert name in " ".join(shown.split())
    assert "…" not in shown
    assert "..." not in shown


def test_several_logs_begin_with_the_jobs_and_the_two_lines_of_apportion() -> None:
    shown = render.text(sample(logs=3), 20)
    assert "3 logs. Possible saving in all findings: up to 52.5 s" in shown
    assert "    --conf spark.sql.extensions=io.apportion.ApportionExtension" in shown
    assert "up to 0.23 h     up to 0.23 h        3         3  nightly" in shown


def test_the_two_lines_of_apportion_need_a_job_that_it_helps() -> None:
    waiting = stage(1, [9000] * 8, shuffle_read_bytes=[MB] * 8, fetch_wait_millis=[3000] * 8)
    large = stage(1, [20_000] * 2, slots=2, shuffle_read_bytes=[512 * MB] * 2)
    old = advise(application(large, version="3.3.1"), "old")
    advice = collected([advise(application(waiting), "waiting"), old])
    assert old.with_apportion.is_known
    assert all(each.count for each in advice.applications)
    assert "io.apportion.ApportionExtension" not in render.text(advice, 20)
    assert "io.apportion.ApportionExtension" not in render.html(advice, 20)
    assert "io.apportion.ApportionExtension" in render.html(sample(logs=2), 20)


def test_top_limits_the_findings_and_counts_the_others() -> None:
    made = application(stage(1, [20_000] * 2, slots=2, shuffle_read_bytes=[512 * MB] * 2), cores=16)
    (failing,) = made.stages
    failing.failed_tasks, failing.wasted_millis = 1, 9000
    advice = collected([advise(made, "log")])
    assert "1 more finding: show them with --top." in render.text(advice, 1)
    assert "more finding" not in render.text(advice, 2)


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


def test_html_escapes_names_and_draws_a_bar_for_each_query() -> None:
    advice = sample("<script>alert(1)</script>")
    page = render.html(Advice(advice.applications, [Unread("<b>", "damaged")]), 20)
    assert "<script>alert" not in page
    assert "<b>" not in page
    parser = _Texts()
    parser.feed(page)
    assert parser.tags.count("svg") == 1
    assert "17.5 s can be saved" in page
    assert "1 log could not be read" in page


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the advice of earlier runs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/apportion/advice"


def copies(folder: Path, count: int = 2) -> list[Path]:
    logs = [folder / f"logs/app-{number}.zstd" for number in range(count)]
    logs[0].parent.mkdir()
    for log in logs:
        log.write_bytes(GOLDEN.read_bytes())
    return logs


def advise_again(logs: Path, *options: str) -> str:
    result = advise_logs(logs, "--processes", "1", "--format", "json", *options)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_a_second_run_does_not_read_logs_again(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = copies(tmp_path)
    printed = advise_again(first.parent)
    assert len(list(kept.iterdir())) == 2
    names: list[str] = []

    def counted_read(log: str, numbers: Sequence[int] = ()) -> ApplicationAdvice | Unread:
        names.append(log)
        return read(log, numbers)

    monkeypatch.setattr(reading, "read", counted_read)
    assert advise_again(first.parent) == printed
    assert names == []
    # A running application writes to its log.
    os.utime(second, (1, 1))
    assert advise_again(first.parent) == printed
    assert names == [str(second)]
    advise_again(first.parent, "--no-resume")
    assert len(names) == 3


@pytest.mark.parametrize(
    "damage", [b"", b"{}", zstandard.compress(b'{"log": 7}'), b"\x28\xb5/\xfd"]
)
def test_damaged_results_of_an_earlier_run_are_ignored(
    tmp_path: Path, kept: Path, damage: bytes
) -> None:
    logs = copies(tmp_path)[0].parent
    printed = advise_again(logs)
    for entry in kept.iterdir():
        entry.write_bytes(damage)
    assert advise_again(logs) == printed


def test_a_folder_for_results_that_cannot_be_written_is_ignored(tmp_path: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text("a file")
    assert advise_again(copies(tmp_path)[0].parent)


def test_the_results_of_earlier_runs_are_limited(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = copies(tmp_path, 4)[0].parent
    advise_again(logs)
    entries = sorted(kept.iterdir())
    for time, entry in enumerate(entries):
        os.utime(entry, (time, time))
    monkeypatch.setattr(reading, "MAX_CACHE", 2 * entries[0].stat().st_size + 100)
    list(reading.read_all([], kept=kept))
    assert sorted(kept.iterdir()) == entries[2:]


def test_a_single_log_leaves_no_result(kept: Path) -> None:
    advise_logs(GOLDEN)
    assert not kept.exists()


def test_a_stopped_command_says_how_to_continue(
    tmp_path: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = copies(tmp_path)

    def stopped_at_second(log: str, numbers: Sequence[int] = ()) -> ApplicationAdvice | Unread:
        if log == str(logs[1]):
            raise KeyboardInterrupt
        return read(log, numbers)

    monkeypatch.setattr(reading, "read", stopped_at_second)
    result = advise_logs(tmp_path / "logs", "--processes", "1")
    assert result.exit_code == 130
    assert result.stderr.replace("\n", " ").strip() == (
        "Error: stopped after 1 of 2 logs. Run the same command again to continue"
    )
    assert len(list(kept.iterdir())) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_command_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("1", "2"):
        # Reading a pipe ends only with its writer.
        os.mkfifo(logs / name)
    program = (
        "import sys; from apportion.cli import app;"
        "app(['advise', *sys.argv[1:], '--processes', '2'])"
    )
    paths = [str(logs / name) for name in ("1", "2")]
    run = subprocess.Popen(
        [sys.executable, "-c", f"if __name__ == '__main__': {program}", *paths],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Opening a pipe waits for its reader.
    writers = [os.open(path, os.O_WRONLY) for path in paths]
    if number == signal.SIGINT:
        os.killpg(run.pid, number)
    else:
        run.kill()
    assert run.stderr
    # The end of the output: all processes have closed it.
    message = run.stderr.read()
    run.stderr.close()
    assert run.wait() == (130 if number == signal.SIGINT else -number)
    assert ("stopped after 0 of 2 logs" in message) == (number == signal.SIGINT)
    for writer in writers:
        os.close(writer)

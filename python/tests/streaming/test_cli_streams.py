"""`apportion streams`."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from apportion.cli import app
from tests.streaming.histories import record, rescale


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    records = [record(number, 60_000, 2) for number in range(30)]
    records += [rescale(30, 60_000, 2, 8)]
    records += [record(number, 60_000, 8, run_id="run-30") for number in range(31, 50)]
    (tmp_path / "_apportion").mkdir()
    write(tmp_path, [each.to_json() for each in records])
    return tmp_path


def write(checkpoint: Path, records: list[dict[str, object]]) -> None:
    text = "".join(json.dumps(each) + "\n" for each in records)
    (checkpoint / "_apportion/journal.jsonl").write_text(text)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["streams", *map(str, arguments)])


def test_it_shows_load_state_and_changes_with_reasons(checkpoint: Path) -> None:
    result = call(checkpoint)
    assert result.exit_code == 0
    shown = result.output
    assert "Partitions  8, 4 task slots, policy load" in shown
    assert "State       3,000 rows, 5 MiB, 640 KiB per partition" in shown
    assert "6,000 per second arrive" in shown
    assert "2 -> 8 partitions: batches took 9.9 s of a 10.0 s trigger" in shown
    assert "6.0 s" in shown


def test_the_last_decision_and_the_end_of_a_stream_are_shown(checkpoint: Path) -> None:
    late = record(1, target=8, reason="batches took 9.4 s of a 10.0 s trigger")
    end = record(1, event="ended", reason="the stream ended with an error: no file")
    write(checkpoint, [late.to_json(), end.to_json()])
    shown = call(checkpoint).output
    assert "Partitions  4, target 8, 4 task slots" in shown
    assert "Decision    batches took 9.4 s of a 10.0 s trigger" in shown
    assert "End         the stream ended with an error: no file" in shown


def test_control_characters_of_a_stream_are_not_printed(checkpoint: Path) -> None:
    hostile = "\x1b]0;owned\x07\x9b"
    write(checkpoint, [record(1, stream=hostile, reason=hostile).to_json()])
    for options in ((), ("--format", "json"), ("--stream", "none")):
        output = call(checkpoint, *options).output
        assert "0;owned" in output
        assert not set("\x1b\x07\x9b").intersection(output)


def test_a_stream_is_found_by_its_name_without_the_start_of_its_id(checkpoint: Path) -> None:
    named = [record(n, stream="orders (01234567)", query_id="01234567-89ab") for n in range(2)]
    write(checkpoint, [each.to_json() for each in named])
    assert call(checkpoint, "--stream", "orders").exit_code == 0
    assert call(checkpoint, "--stream", "01234567-89ab").exit_code == 0
    assert call(checkpoint, "--stream", "order").exit_code == 2


def test_json_has_the_records(checkpoint: Path) -> None:
    (stream,) = json.loads(call(checkpoint, "--format", "json").stdout)["streams"]
    assert stream["stream"] == "clicks"
    assert len(stream["records"]) == 50
    assert stream["records"][30]["pause_millis"] == 6000


def test_it_compares_policies(checkpoint: Path) -> None:
    result = call(checkpoint, "--policy", "fixed:2", "--policy", "load:0.8")
    assert result.exit_code == 0
    for text in ("logged (measured)", "replay", "fixed:2", "load:0.8", "Median error 0%"):
        assert text in result.output
    assert "Pause of a rescale: 6.0 s, the median of 1 rescale in the log" in result.output


def test_a_trigger_of_no_time_is_simulated_as_no_trigger(checkpoint: Path) -> None:
    options = ("--policy", "load", "--trigger", "0s", "--format", "json")
    (stream,) = json.loads(call(checkpoint, *options).stdout)["streams"]
    assert stream["trigger"] is None
    assert {run["late"] for run in stream["runs"]} == {None}


def test_the_times_of_simulated_policies_are_shown(checkpoint: Path) -> None:
    options = ("--policy", "load", "--cooldown", "30s")
    result = call(checkpoint, *options)
    assert "Policies: stabilization 300.0 s, cooldown 30.0 s." in result.output
    (simulation,) = json.loads(call(checkpoint, *options, "--format", "json").stdout)["streams"]
    assert (simulation["stabilization"], simulation["cooldown"]) == (300, 30)


def test_json_has_the_runs(checkpoint: Path) -> None:
    output = call(checkpoint, "--policy", "fixed:2", "--format", "json").stdout
    (simulation,) = json.loads(output)["streams"]
    assert [run["name"] for run in simulation["runs"]] == ["logged", "replay", "fixed:2"]
    assert simulation["runs"][2]["partitions"] == [[0.0, 2]]


@pytest.mark.parametrize("columns", ["80", "160"])
def test_no_line_is_wider_than_the_terminal(
    columns: str, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apportion.cli.support import console

    monkeypatch.setattr(console.out, "_width", int(columns))
    for options in ((), ("--policy", "load:0.8", "--policy", "lag:5min")):
        lines = call(checkpoint, *options).output.splitlines()
        assert max(map(len, lines)) <= int(columns)


def test_follow_shows_changes_until_it_is_stopped(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1:
            write(checkpoint, [record(77, reason="the newest reason").to_json()])
        elif len(waits) == 2:
            # As while a file system replaces the journal.
            (checkpoint / "_apportion/journal.jsonl").unlink()
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", sleep)
    result = call(checkpoint, "--follow", "--every", "0.5")
    assert result.exit_code == 0
    assert waits == [0.5, 0.5, 0.5]
    assert "the newest reason" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--stream", "click"), "has no stream click, but clicks. Did you mean clicks?"),
        (("--follow", "--policy", "load"), "--follow: not with --policy"),
        (("--slots", "4"), "--slots has no effect without --policy"),
        (("--follow", "--cooldown", "5min"), "--cooldown has no effect without --policy"),
        (("--every", "5"), "--every has no effect without --follow"),
        (("--follow", "--every", "1e12"), "should be less than or equal to 86400"),
        (("--policy", "lod"), "the policy lod is unknown"),
        (("--policy", "load", "--cooldown", "x"), "--cooldown is x: write a time"),
        (
            ("--policy", "load", "--stabilization", ""),
            "the argument after --stabilization is empty",
        ),
    ],
)
def test_wrong_options_get_an_error(
    options: tuple[str, ...], message: str, checkpoint: Path
) -> None:
    result = call(checkpoint, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from apportion.cli import app
from apportion.logs.eventlog.model import ESTIMATED_SLOTS

from . import logs


def simulate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)])


def found(*arguments: str | Path) -> dict[str, Any]:
    result = simulate(*arguments, "--format", "json")
    assert result.exit_code == 0, result.stderr
    content: dict[str, Any] = json.loads(result.stdout)
    return content


def rows(*arguments: str | Path) -> dict[str, Any]:
    return {row["name"]: row for row in found(*arguments)["scenarios"]}


def test_simulate_prints_the_measured_run_the_replay_and_spark(log: Path) -> None:
    result = simulate(log)
    assert result.exit_code == 0
    assert "logged (measured)" in result.stdout
    assert "replay" in result.stdout
    assert "spark (apportion.enabled=false)" in result.stdout
    assert "Fit of 4 tasks in 2 stages" in result.stdout
    assert "Tasks of each stage" in result.stdout


def test_options_apply_to_all_scenarios_except_the_replay(log: Path) -> None:
    table = rows(log, "--slots", "4", "--scenario", "active:mode=active")
    assert [(name, row["slots"], row["tasks"]) for name, row in table.items()] == [
        ("logged", 2, 4), ("replay", 2, 4), ("set", 4, 6), ("active", 4, 4), ("spark", 4, 6),
    ]  # fmt: skip


def test_a_scenario_can_set_slots_losses_and_scale(log: Path) -> None:
    table = rows(log, "--scenario", "big:slots=8,executor_slots=2,lose=1@0.5+1@1,scale=10")
    assert table["big"]["scenario"]["losses"] == [
        {"executors": 1, "seconds": 0.5}, {"executors": 1, "seconds": 1.0},
    ]  # fmt: skip
    assert (table["big"]["slots"], table["big"]["scenario"]["scale"]) == (8, 10)
    assert table["big"]["largest_task_bytes"] > 0


def test_one_query_of_a_log_can_be_simulated(tmp_path: Path) -> None:
    log = logs.write(tmp_path / "log", [*logs.application(), *logs.query(3), *logs.query(4)])
    assert "2 queries, one after the other" in simulate(log).stdout
    content = found(log, "--query", "4")
    assert [each["query"] for each in content["scenarios"][0]["queries"]] == [4]


def test_estimated_slots_are_named(tmp_path: Path) -> None:
    events = logs.application(conf={"spark.master": "local[*]"})[:2]
    log = logs.write(tmp_path / "log", [*events, *logs.query(3)])
    shown = simulate(log)
    assert f"Note: {ESTIMATED_SLOTS}" in shown.stdout
    assert found(log)["has_estimated_slots"]
    assert rows(log)["logged"]["slots"] == 2


def test_a_failed_query_is_named(tmp_path: Path) -> None:
    query = logs.query(3)
    query[-1]["errorMessage"] = "an error"
    log = logs.write(tmp_path / "log", [*logs.application(), *query, *logs.query(4)])
    note = "Note: query 3 failed, so the simulation has only the tasks until then"
    assert note in simulate(log).stdout
    queries = found(log)["scenarios"][0]["queries"]
    assert [each["failed"] for each in queries] == [True, False]


def test_simulate_writes_a_file_and_a_plot(log: Path, tmp_path: Path) -> None:
    shown = simulate(log, "-o", tmp_path / "a.txt", "--plot", tmp_path / "a.svg")
    assert shown.stdout == ""
    assert "logged (measured)" in (tmp_path / "a.txt").read_text("utf-8")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")


def test_the_note_about_missing_decisions_counts_only_queries_with_shuffles(tmp_path: Path) -> None:
    plain, scan = logs.query(3, decided=[]), logs.query(4, decided=[])
    # The start, the job and the stage that scans stay.
    del scan[6:-1]
    shown = simulate(logs.write(tmp_path / "log", [*logs.application(), *plain, *scan])).stdout
    assert "Note: the log has no decisions for the shuffles of 1 of 2 queries, and so" in shown
    assert "ran without Apportion" not in shown
    # Spark's own tasks are those of the replay.
    assert "replay" in shown
    assert "apportion.enabled=false" not in shown


def test_notes_are_about_the_scenarios_of_the_table(tmp_path: Path) -> None:
    events = logs.query(decided=[])
    log = logs.write(tmp_path / "log", [*logs.application(), *events])
    shown = simulate(log, "--set", "min_parallelism=4").stdout
    assert "apportion.enabled=false" not in shown
    assert "Note: set: stage 31 keeps its tasks" in shown
    assert "Note: spark:" not in shown


def test_confs_that_the_simulation_does_not_use_are_named(log: Path) -> None:
    confs = ["spark.sql.shufle.partitions=4", "spark.sql.shuffle.partitions=4"]
    result = simulate(log, *(part for conf in confs for part in ("--set", conf)))
    assert result.exit_code == 0
    note = "spark.sql.shufle.partitions changes nothing: the simulation does not use it"
    assert note in result.stderr
    assert "spark.sql.shuffle.partitions changes" not in result.stderr
    assert "changes nothing" not in simulate(log, "--set", "spark.master=spark://host").stderr


def test_notes_name_queries_that_cannot_be_simulated(tmp_path: Path) -> None:
    events = [*logs.application(), *logs.query(decided=[]), *logs.query(4)[:-1]]
    log = logs.write(tmp_path / "log", events)
    log.write_text(f'{log.read_text()}{{"Event":')
    result = simulate(log, "--set", "data_volume_per_task=1MB")
    assert "Note: the log has no decisions for the shuffles of 1 of 1 query" in result.stdout
    assert "query 4 is left out: it has not ended" in result.stdout
    assert "Left out: a line that is not an event" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "9"], "has no query 9. Known queries: 3"),
        (["--slots", "0"], "slots is 0: allowed is 1 to 1,000,000"),
        (["--scale", "-1"], "scale is -1: allowed is above 0"),
        (["--lose", "some"], "lose is 'some': write EXECUTORS@SECONDS"),
        (["--lose", "1@5"], "the scenario loses 1 executor of 1"),
        (
            ["--scenario", "a:slots=3", "--scenario", "b:lose=1@5"],
            "scenario b: the scenario loses 1 executor of 1",
        ),
        (["--set", "data_volume=1"], "unknown setting 'data_volume'"),
        (
            ["--set", "spark.sql.shuffle.partitions=abc"],
            "scenario set: spark.sql.shuffle.partitions is 'abc': allowed is a whole number of 1",
        ),
        (
            ["--scenario", "x:spark.sql.adaptive.coalescePartitions.enabled=yes"],
            "scenario x: spark.sql.adaptive.coalescePartitions.enabled is 'yes': allowed is true",
        ),
        (
            ["--set", "spark.sql.adaptive.advisoryPartitionSizeInBytes=big"],
            "spark.sql.adaptive.advisoryPartitionSizeInBytes is 'big': allowed is a size of 1",
        ),
        (["--scenario", "x"], "--scenario x: write NAME:KEY=VALUE"),
        (["--scenario", "x:slots=many"], "--scenario x:slots=many: slots is 'many'"),
        (["--scenario", "x:scale=big"], "scale is 'big': allowed is a number above 0"),
        (["--scenario", "x:ranges=odd"], "ranges is 'odd': allowed is one of even, balanced"),
        (
            ["--set", "max_parallelism=3", "--scenario", "x:min_parallelism=20"],
            "--scenario x:min_parallelism=20: min_parallelism is 20 and max_parallelism is 3",
        ),
        (["--scenario", "spark:slots=2"], "the scenario name spark is already in use"),
        (["--plot", "a.gif"], "a.gif: the file name must end in .png or .svg"),
        (["-o", "no/such/place"], "cannot write no/such/place: "),
    ],
)
def test_wrong_usage_exits_with_2_and_a_message(
    log: Path, arguments: list[str], message: str
) -> None:
    result = simulate(log, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_an_unreadable_log_exits_with_2(tmp_path: Path) -> None:
    assert simulate(tmp_path / "none").exit_code == 2
    empty = simulate(logs.write(tmp_path / "log", logs.application()))
    assert empty.exit_code == 2
    assert "there is no query to simulate" in empty.stderr

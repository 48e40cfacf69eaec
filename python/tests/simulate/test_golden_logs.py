"""The replay of each golden log has the tasks of the log."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from apportion import eventlog
from apportion.logs.eventlog import Application
from apportion.logs.simulate import Scenario, simulate

GOLDEN = Path(__file__).parents[1] / "eventlog" / "golden"
VERSIONS = ["3.5", "4.0", "4.1", "4.2"]
QUERIES = [0, 1, 2]
SKEWED_JOIN = 2


@cache
def read(version: str) -> Application:
    return eventlog.read(GOLDEN / f"spark-{version}.zstd")


@pytest.mark.parametrize("version", VERSIONS)
def test_each_golden_log_has_the_expected_queries(version: str) -> None:
    assert list(read(version).queries) == QUERIES


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("query", QUERIES)
def test_the_replay_of_a_golden_log_has_the_logged_tasks(version: str, query: int) -> None:
    application = read(version)
    measured, replay = simulate(application, [], [application.queries[query]]).rows
    assert measured.outcomes[0].stages
    assert replay.outcomes[0].stages == measured.outcomes[0].stages
    assert replay.total.makespan == pytest.approx(measured.total.makespan, rel=0.1)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_replay_notes_a_skewed_join_whose_tasks_cannot_be_calculated(version: str) -> None:
    application = read(version)
    (note,) = simulate(application, [], [application.queries[SKEWED_JOIN]]).rows[1].notes
    assert note.startswith("stage 29 keeps its 1")
    assert "predictions for this stage are less certain" in note


@pytest.mark.parametrize("version", VERSIONS)
def test_more_slots_keep_the_tasks_of_a_golden_log_in_active_mode(version: str) -> None:
    application = read(version)
    measured, _, wide = simulate(application, [Scenario("wide", slots=4)]).rows
    assert wide.total.tasks == measured.total.tasks

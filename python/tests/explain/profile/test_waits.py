"""The parts of the time of a query add up to its duration."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from apportion.logs.advise.advice import advise
from apportion.logs.eventlog import Application, Query, Stage
from apportion.logs.explanation.render import text
from apportion.logs.explanation.views.view import view
from apportion.logs.explanation.views.waits import Part, Wait, time_parts
from tests.explain.test_render import TASK_ARRAYS

times = st.integers(0, 1000)


def ran(number: int, submitted: int | None, *tasks: tuple[int, int]) -> Stage:
    """A stage with tasks of (launch, end)."""
    stage = Stage(number, 0, "collect", [], len(tasks), 3, submitted=submitted)
    stage.launched = array("q", [start for start, _ in tasks])
    stage.finished = array("q", [end for _, end in tasks])
    stage.run_millis = array("q", [end - start for start, end in tasks])
    for name in TASK_ARRAYS:
        setattr(stage, name, array("q", [0] * len(tasks)))
    return stage


def test_a_stage_waited_for_the_stage_that_ended_last_before_it() -> None:
    # The broadcast of stage 2 ends after the scan of stage 1, and before stage 3 is submitted.
    stages = [
        ran(1, 100, (150, 500)), ran(2, 100, (150, 600), (160, 580)), ran(3, 700, (720, 900)),
    ]  # fmt: skip
    assert time_parts(0, 1000, stages) == [
        Part(Wait.BEFORE, 100),
        Part(Wait.START, 50),
        Part(Wait.STAGE, 450, 2),
        Part(Wait.BETWEEN, 100),
        Part(Wait.START, 20),
        Part(Wait.STAGE, 180, 3),
        Part(Wait.AFTER, 100),
    ]


def test_a_stage_without_running_tasks_waits_for_the_stage_with_the_slots() -> None:
    waited = ran(1, 0, (0, 100), (600, 700))
    other = ran(2, 0, (100, 580))
    assert time_parts(0, 700, [waited, other]) == [
        Part(Wait.STAGE, 100, 1),
        Part(Wait.STAGE, 480, 2),
        Part(Wait.START, 20),
        Part(Wait.STAGE, 100, 1),
    ]
    assert time_parts(0, 700, [waited]) == [
        Part(Wait.STAGE, 100, 1), Part(Wait.START, 500), Part(Wait.STAGE, 100, 1),
    ]  # fmt: skip


def test_tasks_wait_for_the_stage_that_has_the_slots() -> None:
    # Both stages are submitted at once. The first one has the slots until the second one starts.
    stages = [ran(1, 0, (10, 1200)), ran(2, 0, (1150, 1600))]
    assert time_parts(0, 1600, stages) == [
        Part(Wait.START, 10), Part(Wait.STAGE, 1140, 1), Part(Wait.STAGE, 450, 2),
    ]  # fmt: skip


def test_a_stage_whose_tasks_all_failed_is_waited_for() -> None:
    failed = ran(1, 100)
    failed.completed = 400
    assert time_parts(0, 500, [failed]) == [
        Part(Wait.BEFORE, 100), Part(Wait.STAGE, 300, 1), Part(Wait.AFTER, 100),
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.none() | times, st.lists(st.tuples(times, times).map(sorted), min_size=1, max_size=4)
        ),
        max_size=6,
    ),
    times,
    times,
)
def test_parts_add_up_to_the_time_of_the_query(
    drawn: list[tuple[int | None, list[list[int]]]], start: int, took: int
) -> None:
    stages = [
        ran(number, submitted, *((launch, end) for launch, end in tasks))
        for number, (submitted, tasks) in enumerate(drawn)
    ]
    parts = time_parts(start, start + took, stages)
    assert sum(part.millis for part in parts) == took
    assert all(part.millis > 0 for part in parts)


def test_the_answer_names_the_longest_wait() -> None:
    query = Query(3, "daily", submitted=0, completed=1000)
    query.stages = [ran(7, 700, (700, 1000))]
    made = view(Application(), query)
    assert made.answer == "1.0 s: 70 % before the first task."
    assert made.critical_text == "Critical path: before the first task 0.7 s, stage 7 0.3 s."
    query.stages = [ran(7, 100, (100, 1000))]
    assert view(Application(), query).answer == "1.0 s: 90 % in stage 7, outside of the plan."


def test_the_answer_names_the_problem_of_a_stage_outside_of_the_plan() -> None:
    query = Query(3, "daily", submitted=0, completed=1000)
    query.stages = [ran(7, 0, (0, 1000))]
    query.stages[0].failed_tasks = query.stages[0].memory_failures = 2
    application = Application(queries={3: query}, slots=[(0, 1)])
    findings = advise(application, "log").queries[0].findings
    made = view(application, query, findings)
    assert made.answer == "1.0 s: 100 % in stage 7, outside of the plan; 2 attempts out of memory."
    assert "  advice: stage 7: 2 attempts out of memory; " in text.render(made)

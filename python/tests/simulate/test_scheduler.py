from __future__ import annotations

import random

import pytest

from apportion import ApportionError
from apportion.logs.simulate.scheduler import Cluster, Loss, Stage, run


def test_tasks_wait_for_slots() -> None:
    ran = run([Stage([1, 1, 1])], Cluster(slots=2))
    assert (ran.end, ran.slot_seconds, ran.tasks) == (2, 3, 3)


def test_a_stage_waits_for_its_inputs_and_the_driver() -> None:
    ran = run([Stage([1]), Stage([2]), Stage([1], after=[0, 1], delay=0.5)], Cluster(slots=2))
    assert ran.end == 3.5


def test_the_stage_that_is_ready_first_runs_first() -> None:
    # The long task of the second stage starts when the first stage has all it needs.
    stages = [Stage([2, 2, 2]), Stage([3], delay=0.1)]
    assert run(stages, Cluster(slots=2)).end == 5
    assert run(stages[::-1], Cluster(slots=2)).end == 5


def test_a_stage_without_tasks_ends_at_once() -> None:
    assert run([Stage([1]), Stage([], after=[0]), Stage([1], after=[1])], Cluster(1)).end == 2
    assert run([], Cluster(1)).end == 0


def test_handover_and_launch_take_time() -> None:
    assert run([Stage([1, 1])], Cluster(1, handover=0.5)).end == 2.5
    assert run([Stage([1, 1, 1])], Cluster(3, launch=0.5)).end == 2
    # A slot may be given away before the end of its task is noted, but not before its start.
    assert run([Stage([1, 1])], Cluster(1, handover=-0.25)).end == 1.75
    assert run([Stage([0.1, 1])], Cluster(1, handover=-5)).end == 1


def test_tasks_of_a_lost_executor_run_again_on_another_one() -> None:
    cluster = Cluster(slots=4, slots_per_executor=2, losses=[Loss(executors=1, seconds=0.5)])
    ran = run([Stage([1, 1, 1, 1])], cluster)
    assert (ran.end, ran.reruns) == (2, 2)
    assert ran.slot_seconds == 4 + 2 * 0.5


def test_lost_slots_get_no_tasks() -> None:
    cluster = Cluster(slots=2, slots_per_executor=1, losses=[Loss(1, 1.0)])
    assert run([Stage([1] * 5)], cluster).end == 4


def test_more_slots_are_never_slower_for_one_stage() -> None:
    draw = random.Random(3)
    tasks = [draw.random() for _ in range(300)]
    ends = [run([Stage(tasks)], Cluster(slots)).end for slots in (1, 2, 5, 20, 300)]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] == pytest.approx(sum(tasks))
    assert ends[-1] == max(tasks)


def test_a_cluster_without_executors_raises() -> None:
    with pytest.raises(ApportionError, match=r"loses 2 executors of 2 .* no executor is left"):
        Cluster(4, slots_per_executor=2, losses=[Loss(1, 1), Loss(1, 2)])


@pytest.mark.slow
def test_a_million_tasks_are_scheduled_in_seconds() -> None:
    draw = random.Random(5)
    tasks = [draw.random() for _ in range(500_000)]
    ran = run([Stage(tasks), Stage(tasks, after=[0])], Cluster(10_000, 4, [Loss(50, 10)]))
    assert ran.tasks == 1_000_000

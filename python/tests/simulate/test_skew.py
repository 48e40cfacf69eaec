from __future__ import annotations

from apportion.logs.simulate.arithmetic.decider import decide
from apportion.logs.simulate.arithmetic.inputs import ShuffleInput
from apportion.logs.simulate.arithmetic.policy import Policy

MB = 1 << 20
SKEWED = [MB, MB, 40 * MB, MB, MB, MB, MB, MB]


def test_a_skewed_subpartition_is_split() -> None:
    whole = decide([ShuffleInput(SKEWED, [12 * MB] * 4)], 0, Policy(8 * MB))
    split = decide([ShuffleInput(SKEWED, [12 * MB] * 4, splittable=True)], 0, Policy(8 * MB))
    assert max(whole.task_bytes) == 40 * MB
    assert max(split.task_bytes) == 10 * MB
    assert sum(split.task_bytes) == sum(SKEWED)


def test_parts_of_one_side_of_a_join_read_all_of_the_other_side() -> None:
    sides = [
        ShuffleInput(SKEWED, [12 * MB] * 4, splittable=True),
        ShuffleInput([MB] * 8, [2 * MB] * 4),
    ]
    split = decide(sides, 0, Policy(8 * MB))
    parts = sum(split.task_bytes) - sum(SKEWED) - 8 * MB
    assert parts > 0
    assert parts % MB == 0
    assert max(split.task_bytes) < 20 * MB


def test_even_subpartitions_and_single_map_outputs_are_not_split() -> None:
    even = decide([ShuffleInput([MB] * 8, [MB] * 8, splittable=True)], 0, Policy(MB))
    assert even.task_bytes == [MB] * 8
    single = decide([ShuffleInput(SKEWED, [47 * MB], splittable=True)], 0, Policy(8 * MB))
    assert max(single.task_bytes) == 40 * MB

"""A stream that is killed during a rescale continues, and its output is right."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from apportion.streaming import read_line
from tests.spark_version import since

PROGRAM = Path(__file__).with_name("crashing.py")
STEPS = ("begin", "finish", "repartition", "sink", "start", "end")
OPERATORS = ("aggregate", "deduplicate", "join", "file sink")
ROWS = 200
SECONDS = 300
# Random schedules of kills and faults. Each takes about a minute.
SCHEDULES = 200

pytestmark = since("4.2")


def write_input(base: Path, files: int) -> list[dict[str, Any]]:
    """Write the files of both sides of the join. Half of the rows of a file are in the next."""
    rows = []
    for number in range(files):
        first = number * ROWS // 2
        block = [
            {"id": i, "k": i % 37, "v": i // 3, "at": "2026-01-01T00:00:00Z"}
            for i in range(first, first + ROWS)
        ]
        rows += block
        for side in ("left", "right"):
            (base / side).mkdir(parents=True, exist_ok=True)
            part = block if side == "left" else block[: ROWS // 2]
            text = "\n".join(map(json.dumps, part))
            (base / side / f"{number:05}.json").write_text(text, "utf-8")
    return rows


def expected(rows: list[dict[str, Any]], operator: str) -> Counter[tuple[int, ...]]:
    if operator == "aggregate":
        sums = {k: [r["v"] for r in rows if r["k"] == k] for k in range(37)}
        return Counter((k, sum(values), len(values)) for k, values in sums.items())
    if operator in ("deduplicate", "file sink"):
        return Counter({(r["k"], r["v"]) for r in rows})
    # The right side has only the first half of the last file.
    last = max(r["id"] for r in rows) - ROWS // 2
    return Counter((r["k"], r["v"], r["id"]) for r in rows if r["id"] <= last)


def written(base: Path, operator: str) -> Counter[tuple[int, ...]]:
    files = sorted((base / "out").glob("*.json"), key=lambda file: int(file.stem))
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    if operator == "aggregate":
        # The last row of a key has its result.
        return Counter({r["k"]: (r["k"], r["v"], r["rows"]) for r in rows}.values())
    return Counter(tuple(row.values()) for row in rows)


def run(base: Path, operator: str, step: str, *numbers: float) -> int:
    command = [sys.executable, str(PROGRAM), str(base), operator, step, *map(str, numbers)]
    # A killed JVM leaves its files. The folder of other tests may be in memory.
    local = base / "local"
    env = {**os.environ, "SPARK_LOCAL_DIRS": str(local)}
    with (base / "log.txt").open("ab") as log:
        code = subprocess.run(
            command, stdout=log, stderr=log, start_new_session=True, timeout=SECONDS, check=False,
            env=env,
        ).returncode  # fmt: skip
    shutil.rmtree(local, ignore_errors=True)
    return code


def check(base: Path, operator: str, kills: list[tuple[str, float]], *seeds: int) -> None:
    # Each run of the program reads at most four files before it is killed.
    rows = write_input(base, 4 * len(kills) + 8)
    for place, (step, seconds) in enumerate(kills):
        code = run(base, operator, step, seconds, *seeds[place : place + 1])
        assert code == -signal.SIGKILL, (base / "log.txt").read_text()
    assert run(base, operator, "none", 0) == 0, (base / "log.txt").read_text()
    assert written(base, operator) == expected(rows, operator)
    folder = base / "checkpoint/_apportion"
    assert not (folder / "rescale.json").exists()
    numbers = [read_line(line).batch for line in (folder / "journal.jsonl").open()]
    assert numbers == sorted(numbers)


@pytest.mark.slow
def test_a_kill_while_the_state_is_repartitioned_loses_and_repeats_nothing(tmp_path: Path) -> None:
    check(tmp_path, "aggregate", [("repartition", 0.3)])


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS)
def test_kills_at_each_step_lose_and_repeat_nothing(operator: str, tmp_path: Path) -> None:
    chance = random.Random(operator)
    kills = [(step, delay) for step in STEPS for delay in (0.0, chance.uniform(0.01, 1))]
    kills += [("repartition", chance.uniform(0, 2)) for _ in range(6)]
    check(tmp_path, operator, kills)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_random_kills_and_faults_lose_and_repeat_nothing(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    operator = OPERATORS[seed % len(OPERATORS)]
    steps = [chance.choice([*STEPS, "late"]) for _ in range(chance.randint(1, 3))]
    kills = [(step, chance.uniform(0, 1.5)) for step in steps]
    check(tmp_path, operator, kills, *(chance.randrange(2**31) for _ in kills))

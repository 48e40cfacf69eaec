"""What Apportion decided, and what it would decide."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from apportion import _html
from apportion._spark import jvm
from apportion._util import checks
from apportion._util.units import size_text
from apportion.resources import Requirement, requirement_from_row
from apportion.settings import PREFIX, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclasses.dataclass(frozen=True)
class Input:
    """What a stage reads: `bytes` of each subpartition of a shuffle, or of a broadcast."""

    bytes: Sequence[int]
    broadcast: bool = False


@dataclasses.dataclass(frozen=True)
class Decision:
    """How many tasks read a group of shuffles, which subpartitions each of them reads, and why.

    The columns of `SELECT * FROM apportion_decisions()`. Sizes are bytes as stored.
    """

    query: int | None
    """Spark's SQL execution id of the query; None outside of one."""
    group: int
    """Number of the group of shuffles within its query."""
    decided_at: datetime.datetime
    operator: str
    """What reads the shuffles, such as SortMergeJoin."""
    stages: list[int]
    """Ids of the query stages that are read."""
    shuffles: list[int]
    input_bytes: int
    broadcast_bytes: int
    data_volume_per_task: int | None
    """V: the bytes that a task should read. None, as the next three, for a group left alone."""
    broadcast_cap: int | None
    """The most bytes of a task's volume that broadcasts can take up."""
    raw: int | None
    """Tasks that the volume asks for."""
    rounded: int | None
    """`raw` as it was rounded: to the nearest power of two, or as the setting `rounding` says."""
    clamps: list[str]
    """Limits that changed the number, in order."""
    subpartitions: int
    """N: the most tasks that there can be."""
    parallelism: int
    """P: the tasks that were decided; with mode="observe", those that would have been."""
    tasks: int
    """The tasks that Spark launches: P, but for splits of skewed subpartitions and local reads."""
    ranges: list[tuple[int, int]]
    """Subpartitions that each task reads, `(start, end)` with end excluded."""
    layout: str
    """even, balanced, skew (ranges beside parts of subpartitions), local, files, unchanged, or
    observed: Spark's layout, with mode="observe"."""
    largest_task_bytes: int
    mean_task_bytes: int
    sources: dict[str, str]
    """Who set each setting, by the setting's name."""
    kind: str
    """What decided in the end: formula, or the last limit that changed the number."""
    reason: str
    """The decision in one sentence."""
    requirement: Requirement | None
    """Slots that the stage declares; None for a group left alone, and in older logs."""
    slots: int | None
    """Slots that were there; None in older logs."""
    slots_lost: int
    """Slots that the query had before, and had lost by then: more than 0 is degraded."""
    limited_by_partitions: float | None = None
    """How many times as many tasks as there were shuffle partitions the bytes asked for.

    None where the partitions were enough, and in older logs.
    """

    def formula(self) -> list[tuple[str, str]]:
        """Return the numbers of the formula, each with its name; empty for an unchanged group."""
        volume, cap = self.data_volume_per_task, self.broadcast_cap
        if volume is None or cap is None or self.raw is None:
            return []
        taken = min(self.broadcast_bytes, cap, volume - 1)
        lines = [("V, bytes per task", f"{volume:,}")]
        if self.broadcast_bytes:
            numbers = f"min({self.broadcast_bytes:,}, {cap:,}, {volume:,} - 1)"
            lines.append(("B, broadcast", f"{numbers} = {taken:,}"))
        numbers = f"ceil({self.input_bytes:,} / ({volume:,} - {taken:,}))"
        lines += [
            ("raw, bytes / (V - B)", f"{numbers} = {self.raw:,}"),
            ("rounded", f"{self.rounded:,}"),
            ("limits that changed it", ", ".join(self.clamps) or "none"),
            ("P, tasks decided", f"{self.parallelism:,}"),
        ]
        if self.requirement:
            lines += [
                ("slots (min / target / max)", str(self.requirement)),
                ("registered slots", f"{self.slots}"),
            ]
        return lines

    def _repr_html_(self) -> str:
        return _html.render("decision.html", decision=self, plot="")


class Decisions(list[Decision]):
    """Decisions, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        columns = ["Query", "Read by", "Input", "Partitions", "Tasks", "Largest task", "Why"]
        rows = [
            (
                "" if each.query is None else str(each.query),
                each.operator,
                size_text(each.input_bytes),
                str(each.subpartitions or "-"),
                str(each.tasks),
                size_text(each.largest_task_bytes),
                each.reason,
            )
            for each in self
        ]
        return _html.table(columns, rows)


def _expected(annotation: str) -> set[str]:
    """Return the names of the types that a field of this annotation can have."""
    names = annotation.replace("None", "NoneType").replace("datetime.", "").split(" | ")
    return {name.partition("[")[0] for name in names}


_FIELDS = {field.name: _expected(str(field.type)) for field in dataclasses.fields(Decision)}


def decide(
    spark: SparkSession,
    inputs: Sequence[Input],
    **settings: Any,
) -> Decision:
    """Return what Apportion decides for a stage that reads `inputs`, asked from the extension.

    Settings are the keywords of `Settings`, and the session's own where none is given.
    `sources_default_parallelism` is the answer for no inputs (1 if it is not set).

    Raises `SettingError` for a setting that is not allowed, `InputError` for bytes that are not a
    whole number from 0 to 2^63 - 1, `ApportionError` when the session has no Apportion in it or is
    a Spark Connect client.
    """
    conf = Settings.from_kwargs(**settings).to_conf()
    request = {
        "inputs": [_request(stage_input, f"inputs[{i}]") for i, stage_input in enumerate(inputs)],
        "settings": {key.removeprefix(PREFIX): value for key, value in conf.items()},
    }
    return decision_from_json(jvm.decide(spark, request))


def decisions(spark: SparkSession) -> Decisions:
    """Return the session's last decisions, the latest last; on Spark Connect too.

    `Settings.retained_decisions` bounds how many there are. Raises `ApportionError` when the
    session has no Apportion in it.
    """
    rows = jvm.table(spark, "apportion_decisions")
    return Decisions(_decision(row.asDict(recursive=True)) for row in rows)


@contextmanager
def decisions_taken(spark: SparkSession) -> Iterator[Decisions]:
    """Give a list that has the decisions of the block once that has ended; raises as `decisions`.

    Of more than `Settings.retained_decisions` it has the last.
    """
    before = set(map(_identity, decisions(spark)))
    taken = Decisions()
    yield taken
    taken.extend(each for each in decisions(spark) if _identity(each) not in before)


def decision_from_json(record: Mapping[str, Any]) -> Decision:
    """Return the decision that the extension has written as JSON.

    Raises `KeyError`, `TypeError` or `ValueError` for other data.
    """
    decided_at = datetime.datetime.fromisoformat(record["decided_at"])
    return _decision({**record, "decided_at": decided_at})


def _identity(decision: Decision) -> tuple[object, ...]:
    return decision.query, decision.group, decision.decided_at


def _decision(record: Mapping[str, Any]) -> Decision:
    values: dict[str, Any] = {name: record.get(name) for name in _FIELDS}
    values["ranges"] = [(each["start"], each["end"]) for each in record["ranges"]]
    values["requirement"] = requirement_from_row(record.get("requirement"))
    values["slots_lost"] = record.get("slots_lost") or 0
    for name, expected in _FIELDS.items():
        if type(values[name]).__name__ not in expected:
            raise TypeError(f"{name} of a decision is {values[name]!r}")
    return Decision(**values)


def _request(stage_input: Input, name: str) -> dict[str, Any]:
    for j, size in enumerate(stage_input.bytes):
        checks.check(f"{name}.bytes[{j}]", size, 0, checks.LARGEST_LONG)
    return {"bytes": list(stage_input.bytes), "broadcast": bool(stage_input.broadcast)}

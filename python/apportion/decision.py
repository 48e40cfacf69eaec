"""Decisions on the number of tasks: recorded ones, and ones for given inputs."""

from __future__ import annotations

import dataclasses
import datetime
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from apportion._spark import jvm
from apportion._util import checks, pages, zones
from apportion._util.units import size_text
from apportion.errors import InputError
from apportion.resources import Requirement
from apportion.session import confs
from apportion.settings import PREFIX, Settings

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from pyspark.sql import SparkSession
    from typing_extensions import Unpack

    from apportion.keywords import SettingsKeywords

SHOWN_COLUMNS = ["Read by", "Input", "Shuffle partitions", "Tasks", "Largest task", "Why"]
"""Columns of tables for people."""
_READING = threading.Lock()
_OPEN_COST = "The bytes of files include spark.sql.files.openCostInBytes for each file."


@dataclasses.dataclass(frozen=True)
class HeldRows:
    """Execution memory for the rows of a shuffle in the task that reads them."""

    per_byte: float = 0.0
    """Bytes for each byte that the task reads: copies of rows, with their headers."""
    arrays: Sequence[float] = ()
    """For each array that doubles when it is full, the bytes that it needs for each byte."""


NOTHING_HELD = HeldRows()


@dataclasses.dataclass(frozen=True)
class Input:
    """A shuffle or broadcast that a stage reads: the bytes of each shuffle partition."""

    bytes: Sequence[int]
    broadcast: bool = False
    held: HeldRows = NOTHING_HELD


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What happened when the tasks of a decision ran. Times are milliseconds."""

    stage: int
    """Id of the Spark stage."""
    spilled_bytes: int
    """Bytes that the tasks spilled to disk."""
    peak_task_memory: int
    """Most bytes of execution memory that operators of one task had."""
    gc_millis: int
    """Garbage collection of all tasks."""
    fetch_wait_millis: int
    """Time that all tasks waited for shuffle blocks."""
    median_task_millis: int
    longest_task_millis: int
    failed_tasks: int
    """Attempts of tasks that failed."""
    memory_failures: int
    """Attempts of tasks that ran out of memory."""


@dataclasses.dataclass(frozen=True)
class Decision:
    """The tasks of a group of shuffles, the shuffle partitions of each task, and the reason.

    The fields are the columns of `SELECT * FROM apportion_decisions()`. Sizes are stored bytes.
    """

    query: int | None
    """Spark's SQL execution id; None outside a query."""
    group: int
    """Number of the group within its query."""
    decided_at: datetime.datetime
    """Time in UTC. Logs have the clock of the session, whose zone is in the log too."""
    operator: str
    """Operator that reads the shuffles, such as SortMergeJoin, or scans the files."""
    stages: list[int]
    """Ids of the query stages that wrote the shuffles."""
    shuffles: list[int]
    """Spark's ids of the shuffles."""
    input_bytes: int
    broadcast_bytes: int
    data_volume_per_task: int | None
    """V: target size per task. None for an unchanged group, as are the next three fields."""
    broadcast_cap: int | None
    """Largest part of the target size, in bytes, that broadcasts can take up."""
    raw: int | None
    """Number of tasks that the bytes need, before rounding."""
    rounded: int | None
    """`raw`, rounded to the nearest power of two, or by the setting `rounding`."""
    clamps: list[str]
    """Limits that changed the number, in order."""
    subpartitions: int
    """N: number of shuffle partitions, which is also the maximum number of tasks."""
    levels: list[int]
    """Numbers of groups of partitions that map tasks wrote; empty if Spark wrote the shuffles."""
    blocks: int | None
    """Blocks that map tasks wrote; None if Spark wrote the shuffles."""
    sparks_blocks: int | None
    """Maximum number of blocks that Spark would have written; None if Spark wrote the shuffles."""
    bytes_read_twice: int
    """Bytes that tasks read beyond those of their own shuffle partitions."""
    parallelism: int
    """P: number of tasks decided. With mode="observe", Spark runs another number."""
    tasks: int
    """Number of tasks that Spark launches. It is P unless partitions are split for skew, map
    outputs are read locally, or mode="observe"."""
    ranges: list[tuple[int, int]]
    """Shuffle partitions that each task reads, `(start, end)` with the end excluded."""
    layout: str
    """even, balanced, skew (ranges, and splits of large partitions), local, files, unchanged, or
    observed (Spark's layout, with mode="observe")."""
    largest_task_bytes: int
    mean_task_bytes: int
    sources: dict[str, str]
    """Origin of each value, by the setting's name."""
    kind: str
    """Origin of the number of tasks: formula, or the last limit that changed the number."""
    reason: str
    """The decision in one sentence."""
    requirement: Requirement | None
    """Slots that the stage declares; None for an unchanged group, and in older logs."""
    slots: int | None
    """Number of registered slots; None in older logs."""
    slots_lost: int
    """Slots that the query had before and had lost at the time of the decision."""
    limited_by_partitions: float | None = None
    """Tasks that the bytes need, divided by the number of shuffle partitions.

    None if the partitions are enough, and in older logs.
    """
    largest_task_memory: int | None = None
    """Bytes of execution memory for the rows that the largest task holds; None if memory sets no
    limit."""
    task_memory: int | None = None
    """Bytes of execution memory that the rows of a task may fill; None if memory sets no limit."""
    outcome: Outcome | None = None
    """What happened when the tasks ran; None until the stage has ended, and in older logs."""

    @property
    def shown_largest_bytes(self) -> int:
        """Bytes of the largest task, and at least the mean.

        For scans, `largest_task_bytes` is the maximum for splits. Spark fills a task beyond it by
        the cost of opening one file.
        """
        return max(self.largest_task_bytes, self.mean_task_bytes)

    @property
    def note(self) -> str:
        """Sentence about the bytes of a scan; empty for shuffles."""
        return _OPEN_COST if self.layout == "files" else ""

    def shown_cells(self) -> list[str]:
        """Return the texts of `SHOWN_COLUMNS`."""
        return [
            self.operator,
            size_text(self.input_bytes),
            str(self.subpartitions or "-"),
            str(self.tasks),
            size_text(self.shown_largest_bytes),
            f"{self.reason} {self.note}".strip(),
        ]

    def formula(self) -> list[tuple[str, str]]:
        """Return the terms of the formula as (name, value); empty for an unchanged group."""
        volume, cap = self.data_volume_per_task, self.broadcast_cap
        if volume is None or cap is None or self.raw is None or self.rounded is None:
            return []
        taken = min(self.broadcast_bytes, cap, volume - 1)
        lines = [("V, target size per task", f"{volume:,}")]
        if self.broadcast_bytes:
            numbers = f"min({self.broadcast_bytes:,}, {cap:,}, {volume:,} - 1)"
            lines.append(("B, broadcast", f"{numbers} = {taken:,}"))
        numbers = f"ceil({self.input_bytes:,} / ({volume:,} - {taken:,}))"
        lines += [
            ("raw, bytes / (V - B)", f"{numbers} = {self.raw:,}"),
            ("rounded", f"{self.rounded:,}"),
            ("limits applied", ", ".join(self.clamps) or "none"),
            ("P, tasks decided", f"{self.parallelism:,}"),
        ]
        if self.requirement:
            lines += [
                ("slots (min / target / max)", str(self.requirement)),
                ("registered slots", f"{self.slots}"),
            ]
        return lines

    def _repr_html_(self) -> str:
        return pages.render("decision.html", decision=self, plot="")


class InvalidRecordError(ValueError):
    """A record of a decision has an invalid value, which the message does not show.

    Values of event logs can be huge or hostile.
    """


class Decisions(list[Decision]):
    """List of decisions. Notebooks show it as a table, also after slicing."""

    @overload
    def __getitem__(self, place: SupportsIndex) -> Decision: ...
    @overload
    def __getitem__(self, place: slice) -> Decisions: ...
    def __getitem__(self, place: SupportsIndex | slice) -> Decision | Decisions:
        found = super().__getitem__(place)
        return Decisions(found) if isinstance(found, list) else found

    def to_pandas(self) -> pandas.DataFrame:
        """Return a row for each decision. Raises `ImportError` without pandas."""
        import pandas

        return pandas.DataFrame(map(dataclasses.asdict, self), columns=list(_ANNOTATIONS))

    def to_arrow(self) -> pyarrow.Table:
        """Return a row for each decision. Raises `ImportError` without pyarrow."""
        import pyarrow

        return pyarrow.Table.from_pylist([dataclasses.asdict(each) for each in self])

    def _repr_html_(self) -> str:
        rows = [
            ("" if each.query is None else str(each.query), *each.shown_cells()) for each in self
        ]
        return pages.table(["Query", *SHOWN_COLUMNS], rows)


_ANNOTATIONS = {field.name: str(field.type) for field in dataclasses.fields(Decision)}


def decide(
    spark: SparkSession,
    inputs: Sequence[Input],
    **settings: Unpack[SettingsKeywords],
) -> Decision:
    """Return the extension's decision for a stage that reads `inputs`.

    `settings` are keywords of `Settings`. Other settings have the session's values. Without inputs,
    the number of tasks is `sources_default_parallelism`, or 1 if that is not set.

    Raises `SettingError` for a setting that is not allowed. Raises `InputError` for inputs of
    another type, and for bytes that are not a whole number from 0 to 2^63 - 1. Raises
    `ApportionError` if the session runs without Apportion or is a Spark Connect client.
    """
    conf = Settings.from_kwargs(**settings).to_conf()
    request = {
        "inputs": [_request(stage_input, f"inputs[{i}]") for i, stage_input in enumerate(inputs)],
        "settings": {key.removeprefix(PREFIX): value for key, value in conf.items()},
    }
    zone = zones.time_zone(spark.conf.get(zones.SESSION_ZONE) or "UTC")
    return decision_from_json(jvm.decide(spark, request), zone)


def decisions(spark: SparkSession) -> Decisions:
    """Return the session's last decisions, the latest last. This also works on Spark Connect.

    A session keeps 1,000 of them. Raises `ApportionError` if it runs without Apportion.
    """
    # Spark warns if it cuts the columns in the description of a plan. By default it shows 25. Two
    # threads would restore each other's value.
    with _READING, confs(spark, {"spark.sql.debug.maxToStringFields": "100"}):
        rows = jvm.table(spark, "apportion_decisions")
    return Decisions(_decision(row.asDict(recursive=True)) for row in rows)


@contextmanager
def decisions_taken(spark: SparkSession) -> Iterator[Decisions]:
    """Yield a list that receives the decisions of the block when the block ends.

    The list has the last 1,000 of them. Raises as `decisions` does.
    """
    before = set(map(_identity, decisions(spark)))
    taken = Decisions()
    yield taken
    taken.extend(decision for decision in decisions(spark) if _identity(decision) not in before)


def decision_from_json(
    record: Mapping[str, Any], zone: datetime.tzinfo = datetime.timezone.utc
) -> Decision:
    """Return a decision from the JSON that the extension writes. Unknown fields are ignored.

    `zone` is the time zone of the session that wrote it.

    Raises `KeyError` for a missing field. Raises `InvalidRecordError` for a value with another type
    and for a number below 0 or above 2^63 - 1.
    """
    try:
        decided_at = datetime.datetime.fromisoformat(record["decided_at"])
        decided_at = decided_at.replace(tzinfo=decided_at.tzinfo or zone)
    except (TypeError, ValueError):
        raise InvalidRecordError("decided_at is not a time") from None
    return _decision({**record, "decided_at": decided_at})


def outcome_from_row(row: Mapping[str, Any] | None) -> Outcome | None:
    """Return the outcome in a row of `apportion_decisions()`, or in an event.

    Raises as `decision_from_json` does.
    """
    return None if row is None else Outcome(**_integers(Outcome, row))


def _identity(decision: Decision) -> tuple[object, ...]:
    return decision.query, decision.group, decision.decided_at


def _decision(record: Mapping[str, Any]) -> Decision:
    values: dict[str, Any] = {name: record.get(name) for name in _ANNOTATIONS}
    # Without a zone, the time comes from a row, which has the clock of this process.
    values["decided_at"] = record["decided_at"].astimezone(datetime.timezone.utc)
    values["slots_lost"] = record.get("slots_lost") or 0
    values["levels"] = record.get("levels") or []
    values["bytes_read_twice"] = record.get("bytes_read_twice") or 0
    values["ranges"] = [(span["start"], span["end"]) for span in _objects(record["ranges"])]
    requirement = record.get("requirement")
    values["requirement"] = (
        Requirement(**_integers(Requirement, requirement)) if requirement else None
    )
    values["outcome"] = outcome_from_row(record.get("outcome"))
    for name, annotation in _ANNOTATIONS.items():
        if not _is_valid(values[name], annotation):
            raise InvalidRecordError(f"{name} is not a valid {annotation}")
    return Decision(**values)


def _objects(spans: Any) -> Any:
    if not isinstance(spans, list) or not all(isinstance(span, Mapping) for span in spans):
        raise InvalidRecordError("ranges is not a list of objects")
    return spans


def _integers(kind: type[Outcome | Requirement], record: Any) -> dict[str, int]:
    """Return the fields of a class. A newer extension may write more fields."""
    if not isinstance(record, Mapping):
        raise InvalidRecordError(f"{kind.__name__} is not an object")
    values = {field.name: record[field.name] for field in dataclasses.fields(kind)}
    for name, value in values.items():
        if not _is_valid(value, "int"):
            raise InvalidRecordError(f"{name} of {kind.__name__} is not a valid int")
    return values


def _is_valid(value: Any, annotation: str) -> bool:
    """Return whether a value has the type of a field, and its numbers are in range."""
    if annotation.endswith(" | None"):
        return value is None or _is_valid(value, annotation.removesuffix(" | None"))
    if annotation.startswith("list["):
        inner = annotation.removeprefix("list[").removesuffix("]")
        return isinstance(value, list) and all(_is_valid(each, inner) for each in value)
    if annotation == "dict[str, str]":
        texts = [*value, *value.values()] if isinstance(value, dict) else [None]
        return all(isinstance(text, str) for text in texts)
    if annotation == "tuple[int, int]":
        return all(_is_valid(each, "int") for each in value) and value[0] <= value[1] < 2**31
    if annotation in ("int", "float"):
        # bool is a subclass of int.
        is_number = isinstance(value, int) and not isinstance(value, bool)
        is_number = is_number or (annotation == "float" and isinstance(value, float))
        return is_number and 0 <= value <= checks.LARGEST_LONG
    # The other types are made by this module, from parts that are checked.
    return annotation != "str" or isinstance(value, str)


def _request(stage_input: object, name: str) -> dict[str, Any]:
    if not isinstance(stage_input, Input) or not isinstance(stage_input.held, HeldRows):
        raise InputError(
            f"{name} is {stage_input!r}: allowed is an Input, such as Input([1024, 2048])"
        )
    sizes = [
        checks.check(f"{name}.bytes[{j}]", size, 0, checks.LARGEST_LONG)
        for j, size in enumerate(stage_input.bytes)
    ]
    held: list[Any] = [stage_input.held.per_byte, *stage_input.held.arrays]
    for ratio in held:
        if not checks.is_number(ratio, 0, sys.float_info.max):
            raise InputError(f"{name}.held has {ratio!r}; it must be 0 or more, and finite")
    return {
        "bytes": sizes,
        "broadcast": bool(stage_input.broadcast),
        "held": {"per_byte": float(held[0]), "arrays": [float(ratio) for ratio in held[1:]]},
    }

"""Small applications: stage 0 scans and writes a shuffle, and stage 1 reads it."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence

from apportion.logs.advise.advice import advise
from apportion.logs.advise.model.findings import ApplicationAdvice, Finding, Kind
from apportion.logs.advise.model.stages import MeasuredStage, measured, seconds_alone
from apportion.logs.eventlog import Application, PlanNode, Query, Stage
from apportion.logs.eventlog.tasks import spans

MB = 1 << 20
WRITTEN, READ, SCANNED, FILES, FILE_BYTES, WRITTEN_FILES = 1, 2, 3, 4, 5, 6
AGGREGATE = "HashAggregate(keys=[k#1], functions=[sum(v#2)])"
JOIN = "SortMergeJoin [k#1], [k#2], Inner"


def plan(
    reader: str = AGGREGATE,
    exchange: str = "hashpartitioning(k#1, 200), ENSURE_REQUIREMENTS, [plan_id=1]",
    adaptive: bool = True,
) -> PlanNode:
    """The operator `reader` above a shuffle of a scan."""
    scan_metrics = {"scan time": SCANNED, "number of files read": FILES}
    scan = PlanNode(
        "Scan parquet db.sales",
        "FileScan parquet db.sales[k#1,v#2]",
        {**scan_metrics, "size of files read": FILE_BYTES},
        [],
    )
    shuffle = PlanNode("Exchange", f"Exchange {exchange}", {"data size": WRITTEN}, [scan])
    below = shuffle
    if adaptive:
        below = PlanNode("ShuffleQueryStage", "ShuffleQueryStage 0", {}, [shuffle])
    name = reader.partition("(")[0].partition(" ")[0]
    metrics = {"time": READ, "number of written files": WRITTEN_FILES}
    top = PlanNode(name, reader, metrics, [below])
    if not adaptive:
        return top
    return PlanNode("AdaptiveSparkPlan", "AdaptiveSparkPlan isFinalPlan=true", {}, [top])


def stage(
    id: int,
    millis: Sequence[int],
    slots: int = 4,
    start: int = 0,
    overhead: int = 5,
    **columns: Sequence[int],
) -> Stage:
    """A stage whose tasks run for `millis`, in this order, on some slots. Columns are per task."""
    free = [start] * slots
    launched, finished = array("q"), array("q")
    for each in millis:
        slot = min(range(slots), key=free.__getitem__)
        launched.append(free[slot])
        free[slot] += each
        finished.append(free[slot])
    made = Stage(id, 0, "collect", [], len(millis), 0, accumulators={(SCANNED, READ)[id]: 0})
    made.launched, made.finished = launched, finished
    made.run_millis = array("q", (max(each - overhead, 0) for each in millis))
    nothing = [0] * len(millis)
    for column in (
        "input_bytes", "shuffle_read_bytes", "shuffle_written_bytes", "output_bytes",
        "spilled_bytes", "gc_millis", "fetch_wait_millis",
    ):  # fmt: skip
        setattr(made, column, array("q", columns.get(column, nothing)))
    return made


def application(
    *stages: Stage,
    tree: PlanNode | None = None,
    cores: int = 4,
    conf: dict[str, str] | None = None,
    version: str = "3.5.1",
    driver_metrics: dict[int, int] | None = None,
) -> Application:
    """An application with query 0, which runs the stages."""
    ends = list(itertools.chain(*(each.finished for each in stages)))
    query = Query(
        0,
        "the daily report",
        submitted=0,
        completed=max(ends, default=0) + 100,
        plan=tree or plan(),
        driver_metrics=driver_metrics or {},
        stages=list(stages),
    )
    return Application(
        id="app-1",
        name="nightly",
        spark_version=version,
        started=0,
        conf=conf or {},
        queries={0: query},
        slots=[(0, cores)],
        executor_cores=cores,
    )


def measured_stages(made: Application) -> list[MeasuredStage]:
    """The stages of all queries."""
    alone = seconds_alone(spans(made.stages))
    return [each for query in made.queries.values() for each in measured(made, query, alone)]


def found(made: Application) -> list[Finding]:
    """All findings, first about the configuration."""
    advice = advise(made, "log")
    return [*advice.findings, *(each for query in advice.queries for each in query.findings)]


def kinds(made: Application) -> set[Kind]:
    return {finding.kind for finding in found(made)}


def only(made: Application, kind: Kind) -> Finding:
    """The only finding of a kind."""
    (finding,) = (each for each in found(made) if each.kind is kind)
    return finding


def advice_for(made: Application) -> ApplicationAdvice:
    return advise(made, "log")

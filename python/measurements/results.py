"""Write the results page, and the table of the README, from the raw files.

    make results

Both come from templates with all of their text: `results.md.jinja` and `readme.md.jinja`. No number
that was measured is written in a template.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2

from apportion._util.units import size_text
from apportion.bench.plans import FIELDS, PlanCounts
from measurements import raw
from measurements.raw import RawFile, numbers
from measurements.speed.summary import APPORTION, SPARK, Speed

TEMPLATES = Path(__file__).parent
PAGE, README = raw.ROOT / "docs" / "results.md", raw.ROOT / "README.md"
BLOCK = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- end of results -->)", re.DOTALL)
"""The generated part of the README."""

SPEEDS = {
    "tpch-1": "TPC-H, scale 1",
    "tpch-1-fast-files": "TPC-H, scale 1, fast files",
    "tpch-1-spark-3.5": "TPC-H, scale 1, Spark 3.5",
    "tpch-1-cluster": "TPC-H, scale 1, 8 workers",
    "tpch-1-700m": "TPC-H, scale 1, 700 MB heap",
    "tpch-10": "TPC-H, scale 10",
    "tpch-30": "TPC-H, scale 30",
    "tpcds-1": "TPC-DS, scale 1",
    "tpcds-10": "TPC-DS, scale 10",
    "skew": "skewed keys",
}
"""Raw files of timed queries, with their names in the table."""
SLOTS = (64, 256)
MAPS = 400
BYPASS_OFF = "bypassMergeThreshold=1"
SLOWER = 0.95
"""Ratio below which a query counts as slower."""


def speed(name: str, **where: object) -> Speed:
    """Return the speedups of a raw file, of the rows with some values."""
    file = raw.read(name)
    return Speed(RawFile(name, file.conditions, file.where(**where)))


def least(file: RawFile, **where: object) -> float | None:
    """Return the least seconds of the rows with some values; None without such rows."""
    return min(numbers(file.where(**where), "seconds"), default=None)


def spilled(name: str, variant: str) -> int:
    """Return the bytes that all queries of a raw file spilled in the first round."""
    return sum(int(row["spilled"]) for row in raw.read(name).where(variant=variant, run=1))


class Slots:
    """Emulated task slots, for one number of slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.speed = speed("slots", slots=slots)
        self._rows = self.speed.raw.rows

    def waves(self, variant: str) -> int:
        """Return the waves of all queries in one round."""
        rows = [row for row in self._rows if (row["variant"], row["run"]) == (variant, "1")]
        return sum(int(row["waves"]) for row in rows)

    def idle(self, variant: str) -> float:
        """Return the share of idle slots while stages read shuffles: the mean of the queries."""
        return statistics.fmean(
            numbers((row for row in self._rows if row["variant"] == variant), "idle")
        )

    def errors(self) -> list[float]:
        """Return the relative errors of the simulated times, by query and variant."""
        found: dict[tuple[str, str], list[dict[str, str]]] = {}
        for row in self._rows:
            found.setdefault((row["query"], row["variant"]), []).append(row)
        return [
            abs(float(rows[0]["predicted"]) / statistics.median(numbers(rows, "seconds")) - 1)
            for rows in found.values()
        ]

    def exact(self) -> float:
        """Return the share of the runs whose number of tasks was predicted."""
        return statistics.fmean(row["tasks"] == row["predicted_tasks"] for row in self._rows)


def plans() -> dict[str, Any]:
    """Return the number of queries, and the queries whose plans are worse with Apportion."""
    file = raw.read("plans")
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for row in file.rows:
        found.setdefault((row["benchmark"], row["query"]), {})[row["apportion"]] = row

    def counts(row: Mapping[str, str]) -> PlanCounts:
        return PlanCounts(**{key: int(row[key]) for key in FIELDS})

    worse = [
        f"{benchmark} {query}"
        for (benchmark, query), sides in found.items()
        if sides["on"]["result"] != "same" or counts(sides["on"]).worse(counts(sides["off"]))
    ]
    return {"file": file, "queries": len(found), "worse": worse}


def largest_tasks() -> dict[str, Any]:
    """Return the ratios of the largest tasks, from the lowest."""
    file = raw.read("largest-tasks")
    ratios = sorted(float(row["largest_on"]) / float(row["largest_off"]) for row in file.rows)
    most = float(file.conditions["most"])
    return {"file": file, "ratios": ratios, "most": most, "within": sum(r <= most for r in ratios)}


def memory() -> dict[str, Any]:
    """Return how many queries spilled or failed, were expected to, and both."""
    file = raw.read("memory")
    spilled = [int(row["spilled"]) > 0 or row["failed"] == "True" for row in file.rows]
    expected = [int(row["needed"]) > int(row["limit"]) for row in file.rows]
    both = sum(a and b for a, b in zip(spilled, expected, strict=True))
    return {"file": file, "spilled": sum(spilled), "expected": sum(expected), "both": both}


def file_sizes() -> dict[str, Any]:
    """Return the shares of bytes in files near the target, and the ratios of the times."""
    file = raw.read("file-sizes")
    reachable = sum(int(row["reachable"]) for row in file.rows)
    near = {
        name: sum(int(row[f"{name}_near"]) for row in file.rows) / reachable
        for name in ("plain", "first_run", "learnt")
    }
    times = [
        sorted(
            float(row[f"sized_seconds_{place}"]) / float(row[f"plain_seconds_{place}"])
            for row in file.rows
        )
        for place in (1, 2)
    ]
    same = sum(row["same"] == "True" for row in file.rows)
    return {"file": file, "near": near, "times": times, "same": same}


def deadlines() -> dict[str, Any]:
    """Return how many runs ended in time, and the cost of all in terms of the cheapest ones."""
    file = raw.read("deadlines")
    possible = [row for row in file.rows if row["cheapest"]]
    in_time = sum(float(row["seconds"]) <= float(row["deadline"]) for row in possible)
    costs = [float(row["slot_seconds"]) / float(row["cheapest"]) for row in possible]
    total = sum(numbers(possible, "slot_seconds")) / sum(numbers(possible, "cheapest"))
    return {
        "file": file, "runs": len(possible), "in_time": in_time, "cost": total,
        "worst": max(costs),
    }  # fmt: skip


def plain_logs() -> dict[str, Any]:
    """Return the errors of times that were predicted from logs without Apportion."""
    file = raw.read("plain-logs")
    stages = sum(numbers(file.rows, "stages"))
    return {
        "file": file,
        "errors": numbers(file.rows, "error"),
        "exact": sum(numbers(file.rows, "exact")) / stages,
        "queries": len(file.rows),
    }


def cluster_logs() -> dict[str, Any]:
    """Return the predicted speedups in logs of clusters, from the lowest, and their slots."""
    rows = raw.read("cluster-logs").rows
    faster = sorted(float(row["replayed"]) / float(row["predicted"]) for row in rows)
    return {"faster": faster, "slots": sorted(int(row["slots"]) for row in rows)}


def cost(section: str, item: str, measure: str) -> dict[str, str]:
    """Return a row of the cost of deciding."""
    (row,) = raw.read("cost").where(section=section, item=item, measure=measure)
    return row


def rules() -> dict[str, Any]:
    """Return the share of all time that rules take, and the query with the largest share."""
    file = raw.read("rules-tpch")

    def share(rows: list[dict[str, str]]) -> float:
        return sum(numbers(rows, "rules")) / sum(numbers(rows, "seconds"))

    shares = {query: share(file.where(query=query)) for query in {r["query"] for r in file.rows}}
    return {"share": share(file.rows), "most": max((s, query) for query, s in shares.items())}


def without_bypass(name: str) -> float | None:
    """Return Spark's speedup if it does not write a file per partition; None if not measured."""
    if name == "tpch-1":
        return speed("tpch-1-more").mean(BYPASS_OFF)
    if name == "maps":
        # The threshold was set when Spark started, so these are runs of two sessions.
        before, after = (
            speed(each, query=MAPS).runs[SPARK] for each in (name, f"{name}-no-bypass")
        )
        (ours,), (theirs,) = after.values(), before.values()
        return statistics.median(theirs) / statistics.median(ours)
    return None


def slower(speeds: Iterable[str]) -> Iterator[str]:
    """Yield the queries that Apportion makes slower, by raw file, with Spark's longest time."""
    for name in speeds:
        of = speed(name)
        if found := of.slower(APPORTION, SLOWER):
            names = ", ".join(query.lstrip("0") for query in found)
            longest = max(max(of.runs[of.baseline][query]) for query in found)
            yield f"{SPEEDS[name]}: {names} ({longest:.1f} s)"


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters.update(
        percent=lambda share: f"{share:.0%}",
        two=lambda ratio: f"{ratio:.2f}",
        one=lambda seconds: f"{seconds:.1f}",
        thousands=lambda number: f"{int(number):,}",
        size=size_text,
        median=statistics.median,
        number=lambda query: query.lstrip("0"),
    )
    environment.globals.update(
        without_bypass=without_bypass, cluster_logs=cluster_logs, cost=cost, deadlines=deadlines,
        file_sizes=file_sizes, largest_tasks=largest_tasks, least=least, memory=memory,
        plain_logs=plain_logs, plans=plans, read=raw.read, rules=rules, slower=slower, speed=speed,
        slots=Slots, spilled=spilled, SPEEDS=SPEEDS, SLOTS=SLOTS, SLOWER=SLOWER, MAPS=MAPS,
        BYPASS_OFF=BYPASS_OFF, APPORTION=APPORTION, SPARK=SPARK,
    )  # fmt: skip
    return environment


def page() -> str:
    """Return the results page."""
    return _environment().get_template("results.md.jinja").render()


def readme(text: str) -> str:
    """Return the text of the README with the results of now."""
    block = _environment().get_template("readme.md.jinja").render()
    return BLOCK.sub(lambda _: block, text)


def main() -> None:
    """Write docs/results.md and the table of the README from the raw files."""
    PAGE.write_text(page(), "utf-8")
    README.write_text(readme(README.read_text("utf-8")), "utf-8")

"""Speedups of the variants in a raw file of timed queries."""

from __future__ import annotations

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

from apportion._util import ratios
from apportion._util.ratios import Estimate
from measurements.raw import RawFile

SPARK, APPORTION, FIXED = "Spark", "Apportion", "fixed "


@dataclasses.dataclass(frozen=True)
class Speed:
    """Times of queries under variants. The baseline is Spark's defaults, if they were measured."""

    raw: RawFile

    @cached_property
    def runs(self) -> Mapping[str, Mapping[str, list[float]]]:
        """Seconds of each run, in order, by variant and query."""
        found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in self.raw.rows:
            found[row["variant"]][row["query"]].append(float(row["seconds"]))
        return found

    @property
    def baseline(self) -> str:
        return SPARK if SPARK in self.runs else APPORTION

    @property
    def queries(self) -> list[str]:
        """Queries that ran under every variant."""
        known = [set(by_query) for by_query in self.runs.values()]
        return sorted(set.intersection(*known))

    @property
    def fixed(self) -> list[str]:
        """Variants with a fixed number of partitions, from the lowest."""
        found = [name for name in self.runs if name.startswith(FIXED)]
        return sorted(found, key=lambda name: int(name.removeprefix(FIXED)))

    def faster(self, variant: str) -> Estimate:
        """Return the geometric mean of the ratios of the same round, with its interval."""
        return ratios.geometric_mean(self._rounds(variant))

    def mean(self, variant: str) -> float:
        """Return the same mean without its interval, which takes a second."""
        return ratios.mean_of_medians(self._rounds(variant))

    def _rounds(self, variant: str) -> list[list[float]]:
        ours, theirs = self.runs[variant], self.runs[self.baseline]
        return [ratios.of_rounds(theirs[query], ours[query]) for query in self.queries]

    def ratio(self, query: str, variant: str) -> float:
        """Return the median ratio of a query."""
        rounds = ratios.of_rounds(self.runs[self.baseline][query], self.runs[variant][query])
        return statistics.median(rounds)

    def worst(self, variant: str) -> tuple[str, float]:
        """Return the query with the lowest ratio, and the ratio."""
        found = {query: self.ratio(query, variant) for query in self.queries}
        query = min(found, key=found.__getitem__)
        return query, found[query]

    def slower(self, variant: str, below: float) -> list[str]:
        """Return the queries with a ratio below a limit."""
        return [query for query in self.queries if self.ratio(query, variant) < below]

    def least(self, variant: str) -> float:
        """Return the sum of the least times of all queries."""
        return sum(min(self.runs[variant][query]) for query in self.queries)

    @property
    def best_fixed(self) -> str:
        """The fixed number with the highest mean."""
        return max(self.fixed, key=self.mean)

    @property
    def oracle(self) -> float:
        """Time with the best fixed number of each query, divided by Apportion's time.

        It is the geometric mean over the queries, of the least times. Below 1, Apportion is slower.
        """
        return statistics.geometric_mean(
            min(min(self.runs[name][query]) for name in self.fixed)
            / min(self.runs[APPORTION][query])
            for query in self.queries
        )

    def table(self) -> Iterator[str]:
        """Yield a Markdown table with a row for each variant."""
        yield f"| variant | times faster than {self.baseline} | worst query | sum of least times |"
        yield "| --- | ---: | ---: | ---: |"
        for variant in self.runs:
            total = f"{self.least(variant):.1f} s"
            if variant == self.baseline:
                yield f"| {variant} | 1 | | {total} |"
            else:
                query, ratio = self.worst(variant)
                mean = self.faster(variant)
                yield f"| {variant} | {mean} | {ratio:.2f} ({query}) | {total} |"

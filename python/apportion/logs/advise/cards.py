"""Findings that have one cause, for people. A fix that several stages need is shown once."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence

from apportion.logs.advise.model.findings import (
    ApplicationAdvice,
    Finding,
    Gain,
    Kind,
    largest,
    total,
)
from apportion.logs.advise.rules.pressure import MEMORY

# Evidence of task time that had no result.
_LOST = ("wasted_seconds", "lost_task_seconds")


@dataclasses.dataclass(frozen=True)
class Card:
    """Findings with one cause, with the largest gain first."""

    findings: list[Finding]
    gain: Gain

    @property
    def title(self) -> str:
        """The problem, in words."""
        first = self.findings[0]
        if len(self.findings) == 1 or first.stage is None:
            return f"{first.kind.title}: {first.short}"
        kinds = list(dict.fromkeys(each.kind.title for each in self.findings))
        more = f": {first.short}, and more" if len(kinds) == 1 else ""
        return " and ".join([kinds[0], *(kind.lower() for kind in kinds[1:])]) + more

    @property
    def fixes(self) -> list[str]:
        """Settings or hints that help without Apportion. Each is one fix."""
        # A number for the whole application is enough for each of its stages.
        whole = [each for each in self.findings if each.stage is None and each.query is None]
        first: dict[Kind, Finding] = {}
        # Of one kind, the finding with the largest gain sets the values.
        for finding in whole or self.findings:
            first.setdefault(finding.kind, finding)
        return list(dict.fromkeys(fix for each in first.values() for fix in each.without))

    @property
    def apportion(self) -> list[str]:
        """What Apportion does about it, in words."""
        return list(dict.fromkeys(each.apportion for each in self.findings))


def cards(application: ApplicationAdvice) -> list[Card]:
    """Return the findings of an application by their cause, with the largest gain first."""
    by_cause: dict[Hashable, list[Finding]] = {}
    for finding in sorted(application.all_findings, key=lambda each: each.gain.rank, reverse=True):
        by_cause.setdefault(_cause(finding), []).append(finding)
    made = [
        Card(findings, combined(findings, application.gain.seconds_high, application.slots))
        for findings in by_cause.values()
    ]
    return sorted(made, key=lambda card: card.gain.rank, reverse=True)


def _cause(finding: Finding) -> Hashable:
    if finding.cause == MEMORY:
        return finding.cause, finding.query
    return finding.cause or (finding.kind, finding.apportion, *finding.without)


def combined(findings: Sequence[Finding], seconds: float, slots: float) -> Gain:
    """Return the gain of several findings, limited by the time that they used.

    That is `seconds` on a number of slots, and the time of the attempts that failed.

    Gains of one stage overlap, and so do the gains of a query and of its stages, and those of an
    application and of its queries.
    """
    by_place: dict[tuple[int | None, int | None], list[Gain]] = {}
    for finding in findings:
        by_place.setdefault((finding.query, finding.stage), []).append(finding.gain)
    by_query: dict[int | None, list[Gain]] = {}
    for (query, stage), gains in by_place.items():
        if stage is not None:
            by_query.setdefault(query, []).append(largest(gains))
    queries = {query: total(gains) for query, gains in by_query.items()}
    for (query, stage), gains in by_place.items():
        if stage is None and query is not None:
            queries[query] = largest([*gains, queries.get(query, Gain())])
    lost = sum(each.evidence.get(name, 0) for each in findings for name in _LOST)
    every = total(queries.values(), seconds, (seconds * slots + lost) / 3600)
    return largest([every, *by_place.get((None, None), ())])

"""Finds the runs of the same query in the logs from before and after."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence

from apportion.logs.report.fingerprint import without_literals
from apportion.logs.report.runs import LogRuns, QueryRun


@dataclasses.dataclass(frozen=True)
class Match:
    """The runs of a query; one side is empty if the other logs do not have it."""

    application: str
    before: list[QueryRun]
    after: list[QueryRun]

    @property
    def is_complete(self) -> bool:
        """Whether both sides have runs."""
        return bool(self.before and self.after)


Key = Callable[[QueryRun], Hashable]


def matches(before: Sequence[LogRuns], after: Sequence[LogRuns]) -> list[Match]:
    """Return the queries of all applications, also queries of one side only."""
    applications = _applications(before, after).items()
    return [match for name, (old, new) in applications for match in _queries(name, old, new)]


def _applications(
    before: Sequence[LogRuns], after: Sequence[LogRuns]
) -> dict[str, tuple[list[QueryRun], list[QueryRun]]]:
    """Return the runs of each application before and after, by its name.

    A name that only one side has is compared without its numbers, such as a date. If both sides
    have a single name, the names may differ.
    """
    old_names, new_names = {each.name for each in before}, {each.name for each in after}
    both = old_names & new_names
    is_pair = len(old_names) == len(new_names) == 1

    def key(name: str) -> str:
        if is_pair:
            return min(new_names)
        return name if name in both else without_literals(name)

    sides: dict[str, tuple[list[QueryRun], list[QueryRun]]] = defaultdict(lambda: ([], []))
    for place, logs in enumerate((before, after)):
        for log in logs:
            sides[key(log.name)][place].extend(log.runs)
    return sides


def _queries(name: str, before: list[QueryRun], after: list[QueryRun]) -> Iterator[Match]:
    for key in (_fingerprint_and_description, _fingerprint_of_tables):
        old, new = _by(key, before), _by(key, after)
        shared = [each for each in old if each in new]
        for each in shared:
            yield Match(name, old[each], new[each])
        before = [run for each, runs in old.items() if each not in new for run in runs]
        after = [run for each, runs in new.items() if each not in old for run in runs]
    old, new = _by(_description, before), _by(_description, after)
    for each in dict.fromkeys([*old, *new]):
        runs = old.get(each, []), new.get(each, [])
        # Many queries can have the same description, such as the place of their call.
        if all(len(set(map(_fingerprint, side))) <= 1 for side in runs):
            yield Match(name, *runs)
        else:
            yield from (Match(name, same, []) for same in _by(_fingerprint, runs[0]).values())
            yield from (Match(name, [], same) for same in _by(_fingerprint, runs[1]).values())


def _by(key: Key, runs: Sequence[QueryRun]) -> dict[Hashable, list[QueryRun]]:
    groups: dict[Hashable, list[QueryRun]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _fingerprint(run: QueryRun) -> Hashable:
    # Without a plan, the description is all that is known.
    return run.fingerprint or ("description", run.description)


def _fingerprint_of_tables(run: QueryRun) -> Hashable:
    if run.fingerprint and run.reads_tables:
        return run.fingerprint
    return run.fingerprint, run.description


def _fingerprint_and_description(run: QueryRun) -> Hashable:
    return run.fingerprint, without_literals(run.description)


def _description(run: QueryRun) -> Hashable:
    return run.description

"""Policy files from the advice for event logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apportion.logs.advise.model.findings import (
    Advice,
    ApplicationAdvice,
    Finding,
    QueryAdvice,
    gain_text,
)
from apportion.policies.checks import IDENTIFIER
from apportion.policies.rules import Policies, Rule

_SCAN_TASKS = "sources.parallelism"


def from_advice(advice: Advice) -> Policies:
    """Return rules with the settings that help the queries of the logs.

    The queries with the largest gain come first. A rule matches the query by its fingerprint. If
    the log does not have that, it matches the application by its name, and the tables by theirs.
    """
    rules: dict[object, Rule] = {}
    for rule in _candidates(advice):
        if _names_query(rule):
            # Later runs of the same query have the same conditions, and a smaller gain.
            rules.setdefault(tuple(sorted((k, str(v)) for k, v in rule.match.items())), rule)
    return Policies(list(rules.values()))


def count_unmatched(advice: Advice) -> int:
    """Return the number of queries without a rule, because only their application is known."""
    return sum(not _names_query(rule) for rule in _candidates(advice))


def _names_query(rule: Rule) -> bool:
    # The application alone would match all its queries.
    return "fingerprint" in rule.match or "table" in rule.match


def _candidates(advice: Advice) -> Iterator[Rule]:
    queries = [(each, query) for each in advice.applications for query in each.queries]
    queries.sort(key=lambda pair: pair[1].gain.rank, reverse=True)
    for application, query in queries:
        yield from _rules(application, query)


def _rules(application: ApplicationAdvice, query: QueryAdvice) -> Iterator[Rule]:
    settings: dict[str, str] = {}
    hints: dict[str, str] = {}
    helping: list[Finding] = []
    for finding in query.findings:
        scan_tasks = finding.settings.get(_SCAN_TASKS)
        if scan_tasks is None:
            for name, value in finding.settings.items():
                settings.setdefault(name, value)
        # As a setting, the number would change all scans of the query. A path has no name for a
        # hint.
        elif finding.tables and all(map(_is_table, finding.tables)):
            for table in finding.tables:
                hints.setdefault(table, f"SOURCE_PARALLELISM({table}, {scan_tasks})")
        else:
            continue
        if finding.settings:
            helping.append(finding)
    if settings or hints:
        yield Rule(
            match=_match(application, query, helping),
            settings=settings,
            hints=", ".join(hints.values()) or None,
            name=f"{application.name}, query {query.id}",
            comment="\n".join(_reason(finding) for finding in helping),
        )


def _match(
    application: ApplicationAdvice, query: QueryAdvice, findings: list[Finding]
) -> Mapping[str, str | list[str]]:
    if query.fingerprint:
        return {"fingerprint": query.fingerprint}
    names = sorted({name for finding in findings for name in finding.tables})
    tables = [pattern for name in names for pattern in _patterns(name)]
    match: dict[str, str | list[str]] = {"application": application.name}
    return {**match, "table": tables} if tables else match


def _patterns(name: str) -> list[str]:
    """Return the table, or patterns of the paths that end with a name without a database."""
    return [name] if _is_table(name) else [f"*/{name}", f"*/{name}.*"]


def _is_table(name: str) -> bool:
    """Return whether a name has a database, as tables have in logs. Paths have their last part."""
    return "." in name and IDENTIFIER.fullmatch(name) is not None


def _reason(finding: Finding) -> str:
    return f"{finding.kind.title}: {finding.text} Possible saving: {gain_text(finding.gain)}."

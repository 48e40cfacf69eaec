"""Policy files from the advice for event logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from apportion.advise.findings import Advice, ApplicationAdvice, Finding, QueryAdvice, gain_text
from apportion.policies.rules import Policies, Rule

_SCAN_TASKS = "sources.parallelism"
_TABLE = re.compile(r"\w+(?:\.\w+)*", re.ASCII)


def from_advice(advice: Advice) -> Policies:
    """Return rules with the settings that help the queries of the logs.

    The queries with the largest gain come first. A rule matches the query by its fingerprint. If
    the log does not have that, it matches the application by its name, and the tables by theirs.
    """
    queries = [(each, query) for each in advice.applications for query in each.queries]
    queries.sort(key=lambda pair: pair[1].gain.rank, reverse=True)
    rules: dict[object, Rule] = {}
    for application, query in queries:
        for rule in _rules(application, query):
            # Later runs of the same query have the same conditions, and a smaller gain.
            rules.setdefault(tuple(sorted((k, str(v)) for k, v in rule.match.items())), rule)
    return Policies(list(rules.values()))


def _rules(application: ApplicationAdvice, query: QueryAdvice) -> Iterator[Rule]:
    helping = [finding for finding in query.findings if finding.settings]
    if not helping:
        return
    settings: dict[str, str] = {}
    hints: dict[str, str] = {}
    for finding in helping:
        for name, value in finding.settings.items():
            if name == _SCAN_TASKS and all(map(_TABLE.fullmatch, finding.tables)):
                for table in finding.tables:
                    hints.setdefault(table, f"SOURCE_PARALLELISM({table}, {value})")
            else:
                settings.setdefault(name, value)
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
    tables = sorted({table for finding in findings for table in finding.tables})
    match: dict[str, str | list[str]] = {"application": application.name}
    return {**match, "table": tables} if tables else match


def _reason(finding: Finding) -> str:
    return f"{finding.kind.title}: {finding.text} Gain: {gain_text(finding.gain)}."

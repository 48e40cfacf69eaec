"""Policy files from the advice for event logs."""

from __future__ import annotations

from apportion.logs.advise.model.findings import (
    Advice,
    ApplicationAdvice,
    Finding,
    Gain,
    Kind,
    QueryAdvice,
)
from apportion.policies.from_advice import count_unmatched, from_advice

WAVES = {"ranges": "balanced", "rounding": "waves"}


def finding(
    settings: dict[str, str], tables: list[str] | None = None, kind: Kind = Kind.LAST_WAVE
) -> Finding:
    return Finding(
        kind=kind,
        short="idle slots",
        text="9 tasks ran in waves of 8.",
        apportion="",
        without=[],
        helps=False,
        gain=Gain(1, 2, 0.5, 1),
        evidence={},
        tables=tables or [],
        settings=settings,
    )


def advice(*findings: Finding, fingerprint: str | None = None, gain: float = 1) -> Advice:
    bounds = Gain(0, gain)
    query = QueryAdvice(7, "q", 1, 1, 1, bounds, bounds, list(findings), fingerprint)
    application = ApplicationAdvice(
        "log", "app-1", "etl", "4.2.0", 8, 1, 1, 0, bounds, bounds, [], [query], []
    )
    return Advice([application], [])


def test_a_rule_matches_the_fingerprint_and_says_why() -> None:
    (rule,) = from_advice(advice(finding(WAVES), fingerprint="f00d")).rules
    assert rule.match == {"fingerprint": "f00d"}
    assert rule.settings == WAVES
    assert rule.name == "etl, query 7"
    assert rule.comment == (
        "Last wave: 9 tasks ran in waves of 8. "
        "Possible saving: 1.0 s to 2.0 s (0.5 to 1.0 core-hours)."
    )


def test_without_a_fingerprint_a_rule_matches_the_application_and_the_tables() -> None:
    scans = finding({"sources.parallelism": "4"}, ["sales.orders"], Kind.SMALL_SCAN_TASKS)
    (rule,) = from_advice(advice(scans)).rules
    assert rule.match == {"application": "etl", "table": ["sales.orders"]}
    assert rule.hints == "SOURCE_PARALLELISM(sales.orders, 4)"
    assert rule.settings == {}


def test_no_rule_matches_all_queries_of_an_application() -> None:
    spill = finding({"dataVolumePerTask": "9MB"}, kind=Kind.SPILL)
    assert from_advice(advice(spill)).rules == []
    assert count_unmatched(advice(spill)) == 1
    assert count_unmatched(advice(spill, fingerprint="f00d")) == 0


def test_the_scan_of_a_path_makes_no_rule_as_hints_name_tables() -> None:
    scans = finding({"sources.parallelism": "4"}, ["orders"], Kind.SMALL_SCAN_TASKS)
    assert from_advice(advice(scans)).rules == []
    (rule,) = from_advice(advice(scans, finding(WAVES), fingerprint="f00d")).rules
    assert (rule.hints, rule.settings) == (None, WAVES)


def test_a_path_that_ends_with_a_number_is_no_table_for_a_hint() -> None:
    scans = finding({"sources.parallelism": "4"}, ["logs.2026"], Kind.SMALL_SCAN_TASKS)
    assert from_advice(advice(scans, fingerprint="f00d")).rules == []
    (rule,) = from_advice(advice(finding(WAVES, ["logs.2026"]))).rules
    assert rule.match == {"application": "etl", "table": ["*/logs.2026", "*/logs.2026.*"]}


def test_a_rule_matches_paths_by_their_last_part() -> None:
    (rule,) = from_advice(advice(finding(WAVES, ["orders"]))).rules
    assert rule.match == {"application": "etl", "table": ["*/orders", "*/orders.*"]}


def test_findings_without_a_setting_make_no_rule() -> None:
    assert from_advice(advice(finding({}))).rules == []


def test_runs_of_one_query_make_one_rule_from_the_run_with_the_largest_gain() -> None:
    small = advice(finding({"dataVolumePerTask": "8MB"}), fingerprint="f00d", gain=1)
    large = advice(finding({"dataVolumePerTask": "4MB"}), fingerprint="f00d", gain=2)
    (rule,) = from_advice(Advice([*small.applications, *large.applications], [])).rules
    assert rule.settings == {"dataVolumePerTask": "4MB"}

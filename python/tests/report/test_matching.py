from __future__ import annotations

from apportion.logs.report.matching import matches

from .samples import log, run


def test_queries_with_the_same_fingerprint_are_split_by_description() -> None:
    before = [run(description="q of a"), run(description="q of b")]
    after = [run(description="q of b"), run(description="q of a")]
    found = matches([log(*before)], [log(*after)])
    assert [(m.before[0].description, m.after[0].description) for m in found] == [
        ("q of a", "q of a"),
        ("q of b", "q of b"),
    ]


def test_queries_that_differ_in_literals_are_runs_of_one_query() -> None:
    before = [run(description=f"SELECT * FROM t WHERE day = '{day}'") for day in range(3)]
    (match,) = matches([log(*before)], [log(*before[:1])])
    assert (len(match.before), len(match.after)) == (3, 1)


def test_a_fingerprint_matches_other_descriptions() -> None:
    (match,) = matches([log(run(description="old"))], [log(run(description="new"))])
    assert match.is_complete


def test_a_plan_without_tables_does_not_match_other_descriptions() -> None:
    before, after = (run(description=name, reads_tables=False) for name in ("old", "new"))
    assert len(matches([log(before)], [log(after)])) == 2


def test_a_description_matches_a_changed_or_missing_plan() -> None:
    before = [run(fingerprint="a"), run(fingerprint=None, description="other")]
    after = [run(fingerprint="b"), run(fingerprint="c", description="other")]
    found = matches([log(*before)], [log(*after)])
    assert [match.is_complete for match in found] == [True, True]


def test_an_ambiguous_description_matches_nothing() -> None:
    before = [run(fingerprint="a"), run(fingerprint="b")]
    found = matches([log(*before)], [log(run(fingerprint="c"))])
    assert [match.is_complete for match in found] == [False, False, False]


def test_applications_are_matched_by_name() -> None:
    before = [log(run(), name="a"), log(run(), name="b")]
    after = [log(run(), name="b"), log(run(), name="c")]
    found = {match.application: match.is_complete for match in matches(before, after)}
    assert found == {"a": False, "b": True, "c": False}


def test_several_logs_of_an_application_are_several_runs() -> None:
    (match,) = matches([log(run()), log(run())], [log(run()), log(run()), log(run())])
    assert (len(match.before), len(match.after)) == (2, 3)


def test_dates_in_names_of_applications_may_differ() -> None:
    before = [log(run(), name="etl-2026-11-01"), log(run(), name="b")]
    after = [log(run(), name="etl-2026-11-02"), log(run(), name="b")]
    assert all(match.is_complete for match in matches(before, after))


def test_single_applications_with_different_names_are_compared() -> None:
    (match,) = matches([log(run(), name="old")], [log(run(), name="new")])
    assert match.is_complete
    assert match.application == "new"

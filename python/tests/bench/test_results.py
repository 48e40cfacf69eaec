from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from apportion import ApportionError
from apportion.bench import summary
from apportion.bench.results import QueryResult, Results, load, resume
from apportion.bench.variants import Variant, parse

from .conftest import run


@pytest.fixture
def file(results: Results, tmp_path: Path) -> Path:
    path = tmp_path / "bench.json"
    results.save(path)
    return path


def test_saved_results_are_loaded(results: Results, file: Path) -> None:
    assert load(file) == results
    results.queries["q4"] = QueryResult("SELECT 4", {"a": [run(1)] * 3, "b": [run(2)] * 3})
    results.save(file, {"any": "summary"})
    assert load(file) == results
    assert json.loads(file.read_text())["summary"] == {"any": "summary"}
    # Nothing is left of how the file is replaced in one step.
    assert list(file.parent.iterdir()) == [file]


def test_results_that_cannot_be_written_raise(results: Results, tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match=r"cannot write .*/none/bench.json: No such file"):
        results.save(tmp_path / "none" / "bench.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is not complete JSON"),
        ('{"format": "apportion be', "is not complete JSON"),
        ("\xff", "is not complete JSON"),
        ("[1, 2]", "is not a result of apportion bench: its format is None"),
        ('{"format": "png"}', "is not a result of apportion bench: its format is 'png'"),
        (
            '{"format": "apportion bench 1"}',
            "is not a complete result of apportion bench: KeyError",
        ),
    ],
)
def test_a_file_without_results_raises(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "bench.json"
    path.write_text(content, "latin-1")
    with pytest.raises(ApportionError, match=f"{path} {message}"):
        load(path)


def test_results_with_missing_runs_raise(results: Results, file: Path) -> None:
    results.queries["q1"].runs["b"].pop()
    results.save(file)
    with pytest.raises(ApportionError, match=r"not a complete result .*2 runs of query q1 under b"):
        load(file)


def test_a_missing_file_of_results_raises(tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match=r"cannot read .*bench.json: No such file"):
        load(tmp_path / "bench.json")


def test_a_measurement_resumes_from_its_file(results: Results, file: Path, tmp_path: Path) -> None:
    start = Results(results.conditions, results.environment)
    assert resume(file, start, {"q2": "SELECT 2", "q9": "SELECT 9"}) == results
    assert resume(tmp_path / "none.json", start, {}) is start


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rounds": 5}, r"measured with rounds 3, not 5\. Choose .* --output, or .* with --fresh"),
        ({"scale": 1.0, "suite": "other"}, "suite made-up, not other; scale 0.5, not 1.0"),
        (
            {"variants": [Variant("a", {"x": "1"})]},
            r"variants a \(x=1\) b \(x=2\), not a \(x=1\)\.",
        ),
        ({"conf": {"spark.a": "b"}}, "conf {}, not {'spark.a': 'b'}"),
    ],
)
def test_resuming_with_other_conditions_raises(
    results: Results, file: Path, changed: dict[str, Any], message: str
) -> None:
    start = Results(dataclasses.replace(results.conditions, **changed), results.environment)
    with pytest.raises(ApportionError, match=message):
        resume(file, start, {})


def test_resuming_with_another_spark_raises(results: Results, file: Path) -> None:
    start = Results(results.conditions, dataclasses.replace(results.environment, spark="4.1.1"))
    with pytest.raises(ApportionError, match=r"spark 4.2.1, not 4.1.1"):
        resume(file, start, {})


def test_resuming_with_a_changed_query_raises(results: Results, file: Path) -> None:
    start = Results(results.conditions, results.environment)
    with pytest.raises(ApportionError, match="measured with another text of query q1"):
        resume(file, start, {"q1": "SELECT 10"})


def test_the_summary_of_results_is_json(results: Results, file: Path) -> None:
    results.save(file, summary.as_json(results, summary.summarise(results)))
    found = json.loads(file.read_text())["summary"]
    assert found["queries"]["q1"]["b"] == {"value": 4.0, "interval": None}
    assert found["queries"]["q3"]["b"] is None
    assert [each["variant"] for each in found["variants"]] == ["a", "b"]


def test_the_secrets_of_variants_are_not_saved(results: Results, tmp_path: Path) -> None:
    variants = [results.conditions.variants[0], Variant("b", {"spark.x.password": "HIDE"})]
    conditions = dataclasses.replace(results.conditions, variants=variants)
    secret = dataclasses.replace(results, conditions=conditions)
    file = tmp_path / "secret.json"
    secret.save(file)
    assert "HIDE" not in file.read_text()
    # The same command goes on.
    assert resume(file, secret, {}).queries == results.queries
    changed = Variant("b", {"spark.x.password": "HIDE", "spark.y": "2"})
    other = dataclasses.replace(conditions, variants=[variants[0], changed])
    with pytest.raises(ApportionError, match=r"spark\.y=2") as error:
        resume(file, dataclasses.replace(results, conditions=other), {})
    assert "HIDE" not in str(error.value)


def test_the_secrets_of_variants_are_not_in_errors() -> None:
    with pytest.raises(ApportionError, match="--variant b: unknown setting") as error:
        parse("b:paswort=x,spark.x.password=HIDE")
    assert "HIDE" not in str(error.value)

"""The generated TPC tables and the texts of the queries; test_tpc.py runs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from apportion import ApportionError
from apportion.bench.suites import tpc


def test_generate_makes_a_folder_of_tables_once(tmp_path: Path) -> None:
    folder = tpc.generate("tpch", 0.001, tmp_path / "it's here")
    assert folder == tmp_path / "it's here" / "tpch-sf0.001"
    names = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.parquet" for name in names]
    written = (folder / "nation.parquet").stat().st_mtime_ns
    assert tpc.generate("tpch", 0.001, tmp_path / "it's here") == folder
    assert (folder / "nation.parquet").stat().st_mtime_ns == written
    # Nothing else is left, such as the database they were made in.
    assert list(folder.parent.iterdir()) == [folder]


def test_generate_leaves_no_files_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_work: object, _benchmark: str, _scale: float, folder: Path) -> None:
        (folder / "nation.parquet").write_text("half a table")
        raise ApportionError("the disk is full")

    monkeypatch.setattr(tpc, "in_process", fail)
    with pytest.raises(ApportionError, match="the disk is full"):
        tpc.generate("tpch", 0.001, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("benchmark", "count"), [("tpch", 22), ("tpcds", 99)])
def test_queries_are_in_the_dialect_of_spark(benchmark: tpc.Benchmark, count: int) -> None:
    texts = tpc.queries(benchmark)
    assert list(texts) == list(range(1, count + 1))
    # Quotes and semicolons are what differs from Spark's dialect.
    assert not [number for number, text in texts.items() if '"' in text or text.endswith(";")]


@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_a_scale_of_0_or_less_raises(scale: float, tmp_path: Path) -> None:
    with pytest.raises(ApportionError, match=f"scale is {scale:g}: allowed is above 0"):
        tpc.generate("tpch", scale, tmp_path)


def test_an_unknown_benchmark_raises(tmp_path: Path) -> None:
    benchmark: Any = "tpcc"
    with pytest.raises(
        ApportionError, match="unknown benchmark 'tpcc': allowed are tpch and tpcds"
    ):
        tpc.generate(benchmark, 1, tmp_path)


def test_a_missing_duckdb_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(
        ApportionError, match=r"needs the Python package duckdb, .* 'apportion\[spark,demo\]'"
    ):
        tpc.queries("tpch")

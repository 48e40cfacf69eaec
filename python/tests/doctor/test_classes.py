"""The classes of Spark that Apportion's jar uses."""

from __future__ import annotations

from pathlib import Path

from apportion._spark import jars
from apportion.doctor import examine
from apportion.doctor.java_files.used_classes import compare


def test_the_installed_spark_has_all_members_that_the_jar_uses() -> None:
    (found,) = (finding for finding in examine() if finding.check == "Classes")
    assert found.verdict == "ok"
    right, _, all, *_ = found.looked_at.split()
    assert int(right) == int(all) > 100


def test_missing_classes_and_members_are_named(tmp_path: Path) -> None:
    [core] = (jars.spark_home() / "jars").glob("spark-core_*.jar")
    (tmp_path / core.name).symlink_to(core)
    found = compare(jars.find(), tmp_path)
    assert found is not None
    assert found.missing["org.apache.spark.sql.SparkSession"] == []
    assert "org.apache.spark.SparkEnv" in found.classes
    assert "org.apache.spark.SparkEnv" not in found.missing


def test_files_that_are_no_jars_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "a.jar").touch()
    assert compare(jars.find(), tmp_path) is None
    assert compare(tmp_path / "a.jar", jars.spark_home() / "jars") is None

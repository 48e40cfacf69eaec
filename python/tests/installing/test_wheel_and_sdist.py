"""What the wheel and the sdist hold, and that the same sources give the same bytes."""

from __future__ import annotations

import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import build_hook
from tests import programs

from .conftest import ROOT
from .distributions import Distributions, build, unpacked

JARS = ROOT / "target" / "jars"
MOST_BYTES = 5_000_000


def python_files() -> set[str]:
    """Return the files of the package that are no caches, by their paths in the wheel."""
    package = ROOT / "python" / "apportion"
    return {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def jars() -> list[str]:
    return (JARS / "jars.txt").read_text("utf-8").split()


def sources() -> set[str]:
    """Return what the jars are built from, by their paths in the sdist."""
    files = (path for pattern in build_hook.SOURCES for path in ROOT.glob(pattern))
    return {path.relative_to(ROOT).as_posix() for path in files if path.is_file()}


def test_the_wheel_has_the_package_a_jar_for_each_spark_and_the_licence(
    built: Distributions,
) -> None:
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
    own, other = (
        {name for name in names if name.startswith("apportion/") == own} for own in (True, False)
    )
    assert own == python_files() | {f"apportion/jars/{jar}" for jar in jars()}
    assert "apportion/py.typed" in own
    assert {name.partition(".dist-info/")[2] for name in other} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip


def test_the_sdist_has_exactly_the_sources_of_the_wheel(built: Distributions) -> None:
    with tarfile.open(built.sdist) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    of_the_package = {f"python/{name}" for name in python_files()}
    of_the_build = {"python/build_hook.py", "pyproject.toml", ".gitignore", "PKG-INFO"}
    pages = {"CHANGELOG.md", "README.md"}
    assert names == of_the_package | of_the_build | pages | sources()


def test_each_jar_has_its_licence_and_only_classes_of_apportion() -> None:
    for name in jars():
        with zipfile.ZipFile(JARS / name) as jar:
            files = [file for file in jar.namelist() if not file.endswith("/")]
        meta = {file for file in files if file.startswith("META-INF/")}
        assert meta == {
            "META-INF/LICENSE",
            "META-INF/MANIFEST.MF",
            "META-INF/services/org.apache.spark.status.AppHistoryServerPlugin",
        }
        ours = (
            "io/apportion/",
            "org/apache/spark/apportion/",
            "org/apache/spark/sql/apportion/",
            "org/apache/spark/sql/execution/apportion/",
        )
        assert [file for file in files if file not in meta and not file.startswith(ours)] == []


def test_the_wheel_is_below_its_maximum_size(built: Distributions) -> None:
    assert built.wheel.stat().st_size < MOST_BYTES


def test_the_metadata_of_wheel_and_sdist_is_valid(built: Distributions) -> None:
    printed = programs.run(sys.executable, "-m", "twine", "check", "--strict", *built)
    assert printed.count("PASSED") == 2


def test_an_unpacked_sdist_builds_the_same_sdist_and_wheel(
    built: Distributions, tmp_path: Path
) -> None:
    root = unpacked(built.sdist, tmp_path / "unpacked")
    shutil.copytree(JARS, root / "target" / "jars")
    same(build(root, tmp_path / "again"), built)


@pytest.mark.slow
def test_jars_built_in_another_folder_are_identical(built: Distributions, tmp_path: Path) -> None:
    same(build(unpacked(built.sdist, tmp_path / "unpacked"), tmp_path / "again"), built)


def same(first: Distributions, second: Distributions) -> None:
    """Compare two builds byte by byte; a wheel that differs, file by file."""
    first_files, second_files = digests(first.wheel), digests(second.wheel)
    assert {name for name, _ in first_files ^ second_files} == set()
    assert first.wheel.read_bytes() == second.wheel.read_bytes()
    assert first.sdist.read_bytes() == second.sdist.read_bytes()


def digests(wheel: Path) -> set[tuple[str, int]]:
    with zipfile.ZipFile(wheel) as archive:
        return {(each.filename, each.CRC) for each in archive.infolist()}

"""The build hook, run on stand-ins for java and sbt; and what pyproject.toml repeats."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

import build_hook
from apportion._spark import jars
from build_hook import BuildError, JarsHook, build_jars, fingerprint

ROOT = Path(__file__).resolve().parents[2]
JARS = ["apportion-spark-4.2_2.13-0.1.0.jar", "apportion-spark-4.1_2.13-0.1.0.jar"]
CLASS = b"\0" * 1000
JAVA_17 = 'openjdk version "17.0.15" 2025-04-15'
JAVA_11 = 'openjdk version "11.0.27" 2025-04-15'
ADVICE = (
    "Building Apportion needs Java 17 or newer: install a JDK, set JAVA_HOME to its folder, and "
    "try again"
)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the whole PATH; JAVA_HOME is not set."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the few files that matter."""
    root = tmp_path / "a checkout"
    write(root / "build.sbt", 'ThisBuild / version := "0.1.0"')
    write(root / "project/build.properties", "sbt.version=1.13.0\n")
    write(root / "project/SparkVersion.scala", "object SparkVersion")
    write(root / "jvm/src/main/scala/A.scala", "object A")
    return root


@pytest.fixture
def sbt_runs(path: Path, checkout: Path) -> Path:
    """A file with a line for each run of an sbt that writes two jars."""
    with zipfile.ZipFile(checkout / "classes.jar", "w", zipfile.ZIP_DEFLATED) as jar:
        jar.writestr("io/apportion/A.class", CLASS)
    program(path / "java", f"echo '{JAVA_17}' >&2")
    log = path / "log"
    program(
        path / "sbt",
        f'echo "$@" >> {log}',
        "/bin/mkdir -p target/jars",
        *(f"/bin/cp classes.jar target/jars/{jar}" for jar in JARS),
        f"echo '{' '.join(JARS)}' > target/jars/jars.txt",
    )
    return log


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def program(file: Path, *lines: str) -> None:
    write(file, "\n".join(["#!/bin/sh", *lines, ""]))
    file.chmod(0o755)


# Java


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "11.0.27"', 11),
        ("Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_java_versions_are_parsed(printed: str, major: int | None) -> None:
    assert build_hook.java_major(printed) == major


def test_java_is_found_in_java_home(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path / "java", f"echo '{JAVA_11}' >&2")
    program(path / "home/bin/java", f"echo '{JAVA_17}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(path / "home"))
    assert build_hook.find_java() == str(path / "home/bin/java")


def test_java_is_found_on_path_without_java_home(path: Path) -> None:
    program(path / "java", f"echo '{JAVA_17}' >&2")
    assert build_hook.find_java() == str(path / "java")


def test_a_missing_java_is_an_error(path: Path) -> None:
    with pytest.raises(BuildError) as error:
        build_hook.find_java()
    assert str(error.value) == f"no java on PATH. {ADVICE}"


def test_an_old_java_is_an_error(path: Path) -> None:
    program(path / "java", f"echo '{JAVA_11}' >&2")
    with pytest.raises(BuildError) as error:
        build_hook.find_java()
    assert str(error.value) == f"{path}/java (on PATH) is Java 11. {ADVICE}"


def test_a_java_home_without_java_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path / "java", f"echo '{JAVA_17}' >&2")
    monkeypatch.setenv("JAVA_HOME", str(path / "gone"))
    with pytest.raises(BuildError) as error:
        build_hook.find_java()
    assert str(error.value) == f"JAVA_HOME is {path}/gone, which has no bin/java. {ADVICE}"


def test_a_java_that_does_not_run_is_an_error(path: Path) -> None:
    program(path / "java", "echo 'Unable to locate a Java Runtime.' >&2", "exit 1")
    with pytest.raises(BuildError) as error:
        build_hook.find_java()
    assert str(error.value) == (
        f"{path}/java (on PATH) does not print its version, but: "
        f"Unable to locate a Java Runtime.\n{ADVICE}"
    )


def test_a_java_of_another_machine_is_an_error(path: Path) -> None:
    write(path / "java", "\x7fELF of another machine")
    (path / "java").chmod(0o755)
    with pytest.raises(BuildError) as error:
        build_hook.find_java()
    assert str(error.value) == f"{path}/java does not run: Exec format error. {ADVICE}"


# sbt


def test_sbt_is_found_on_path(path: Path, checkout: Path) -> None:
    program(path / "java", f"echo '{JAVA_17}' >&2")
    program(path / "sbt")
    command = build_hook.sbt_command(checkout, ["jars"])
    assert command[0] == str(path / "sbt")
    assert "-J-Xmx2g" in command
    assert command[-1] == "jars"


def test_the_sbt_launcher_is_used_if_sbt_is_not_on_path(
    path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(path / "java", f"echo '{JAVA_17}' >&2")
    monkeypatch.setattr(build_hook, "sbt_launcher", lambda root: root / "launch.jar")
    command = build_hook.sbt_command(checkout, ["jars"])
    assert command[0] == str(path / "java")
    assert "-Xmx2g" in command
    assert command[-3:] == ["-jar", str(checkout / "launch.jar"), "jars"]


def test_a_failed_download_of_the_sbt_launcher_is_an_error(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jgo.maven

    def no_network(**_: Any) -> None:
        raise RuntimeError("no route to host")

    monkeypatch.setattr(jgo.maven, "MavenContext", no_network)
    with pytest.raises(BuildError) as error:
        build_hook.sbt_launcher(checkout)
    assert str(error.value) == (
        "sbt is not on PATH, and its launcher org.scala-sbt:sbt-launch:1.13.0 cannot be fetched "
        "from Maven Central: no route to host. Check the network or install sbt, then try again"
    )


def test_an_sbt_launcher_with_another_digest_is_an_error(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import jgo.maven

    launcher = tmp_path / "sbt-launch.jar"
    launcher.write_bytes(b"launcher")
    found = MagicMock()
    found().project().at_version().artifact().resolve.return_value = launcher
    monkeypatch.setattr(jgo.maven, "MavenContext", found)
    properties = checkout / "project/build.properties"
    digest = build_hook.file_digest(launcher)
    write(properties, f"sbt.version=1.13.0\nsbt.launcher.sha256={digest}\n")
    assert build_hook.sbt_launcher(checkout) == launcher
    launcher.write_bytes(b"of a stranger")
    with pytest.raises(BuildError) as error:
        build_hook.sbt_launcher(checkout)
    assert str(error.value) == (
        f"{launcher} has the SHA-256 digest {build_hook.file_digest(launcher)}, and {properties} "
        f"allows {digest}. Delete the file, then try again"
    )


def test_the_sbt_version_comes_from_build_properties(checkout: Path) -> None:
    assert build_hook.build_property(checkout, "sbt.version") == "1.13.0"


def test_build_properties_without_a_version_are_an_error(checkout: Path) -> None:
    properties = checkout / "project/build.properties"
    write(properties, "# sbt.version=1.13.0")
    with pytest.raises(BuildError) as error:
        build_hook.build_property(checkout, "sbt.version")
    assert str(error.value) == f"{properties} has no line sbt.version=..."


def test_a_failed_sbt_is_an_error(path: Path, checkout: Path) -> None:
    program(path / "java", f"echo '{JAVA_17}' >&2")
    program(
        path / "sbt",
        'i=1; while [ $i -le 40 ]; do echo "line $i"; i=$((i+1)); done',
        "echo '[error] no' >&2",
        "exit 3",
    )
    with pytest.raises(BuildError) as error:
        build_jars(checkout)
    first, *shown, again = str(error.value).splitlines()
    assert first == "sbt failed with exit code 3. Its last lines:"
    assert shown == [f"    line {i}" for i in range(12, 41)] + ["    [error] no"]
    assert re.fullmatch(rf"To run it again: cd '{checkout}' && {path}/sbt -J-Xmx2g .* jars", again)


# Built once


@pytest.mark.parametrize(
    "changed",
    [
        "LICENSE",
        "build.sbt",
        "project/build.properties",
        "project/SparkVersion.scala",
        "project/new.sbt",
        "jvm/src/main/scala/A.scala",
        "jvm/src/main/scala-spark-4.2/New.scala",
        "jvm/src/main/resources/new.txt",
    ],
)
def test_the_fingerprint_changes_with_a_source(checkout: Path, changed: str) -> None:
    before = fingerprint(checkout)
    write(checkout / changed, "changed")
    assert fingerprint(checkout) != before


@pytest.mark.parametrize(
    "changed",
    [
        "README.md",
        "project/target/Plugin.scala",
        "jvm/src/test/scala/ASuite.scala",
        "jvm/src/jmh/scala/ABenchmark.scala",
        "target/jars/a.jar",
        "python/apportion/a.py",
    ],
)
def test_the_fingerprint_ignores_other_files(checkout: Path, changed: str) -> None:
    before = fingerprint(checkout)
    write(checkout / changed, "changed")
    assert fingerprint(checkout) == before


def test_the_fingerprint_changes_with_the_name_of_a_source(checkout: Path) -> None:
    before = fingerprint(checkout)
    source = checkout / "jvm/src/main/scala/A.scala"
    source.rename(source.with_name("B.scala"))
    assert fingerprint(checkout) != before


def test_jars_are_built_only_once(checkout: Path, sbt_runs: Path) -> None:
    built = build_jars(checkout)
    assert built == [checkout / "target/jars" / jar for jar in JARS]
    assert build_jars(checkout) == built
    assert len(sbt_runs.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root / "jvm/src/main/scala/A.scala", "object A { }"),
        lambda root: write(root / "target/jars" / JARS[0], "of another build"),
        lambda root: (root / "target/jars" / JARS[1]).unlink(),
        lambda root: (root / "target/jars/built.json").unlink(),
        lambda root: write(root / "target/jars/built.json", ""),
        lambda root: write(root / "target/jars/built.json", '{"sources": "1'),
        lambda root: write(root / "target/jars/built.json", "[]"),
        lambda root: write(root / "target/jars/built.json", '{"jars": 1}'),
    ],
    ids=[
        "source changed", "jar changed", "jar deleted", "record deleted",
        "record empty", "record cut off", "record is a list", "record without sources",
    ],
)  # fmt: skip
def test_jars_are_built_again_after_a_change(checkout: Path, sbt_runs: Path, change: Any) -> None:
    build_jars(checkout)
    change(checkout)
    build_jars(checkout)
    assert len(sbt_runs.read_text().splitlines()) == 2


# The hook


def hook(root: Path) -> JarsHook:
    return JarsHook(str(root), {}, None, SimpleNamespace(), str(root / "dist"), "wheel")  # type: ignore[arg-type]


def test_a_wheel_bundles_exactly_the_jars_and_compresses_each_as_a_whole(
    checkout: Path, sbt_runs: Path
) -> None:
    build_data: dict[str, Any] = {"force_include": {}}
    hook(checkout).initialize("standard", build_data)
    bundled = {Path(source): name for source, name in build_data["force_include"].items()}
    assert list(bundled.values()) == [f"apportion/jars/{jar}" for jar in JARS]
    for source in bundled:
        with zipfile.ZipFile(source) as jar:
            assert [(file.filename, file.compress_type) for file in jar.infolist()] == [
                ("io/apportion/A.class", zipfile.ZIP_STORED)
            ]
            assert jar.read("io/apportion/A.class") == CLASS


def test_an_editable_install_builds_the_jars_in_place(checkout: Path, sbt_runs: Path) -> None:
    build_data: dict[str, Any] = {"force_include": {}}
    hook(checkout).initialize("editable", build_data)
    assert build_data == {"force_include": {}}
    assert sbt_runs.exists()


def test_an_error_of_the_build_hook_is_one_message(path: Path, checkout: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        hook(checkout).initialize("standard", {"force_include": {}})
    assert stop.value.code == f"error: no java on PATH. {ADVICE}"


# The script


def test_the_build_script_prints_the_jars(
    checkout: Path,
    sbt_runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(build_hook, "ROOT", checkout)
    assert build_hook.main(["jars"]) == 0
    assert capsys.readouterr().out == "".join(f"{checkout}/target/jars/{jar}\n" for jar in JARS)


def test_the_build_script_runs_sbt_and_returns_its_exit_code(
    path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    program(path / "java", f"echo '{JAVA_17}' >&2")
    program(path / "sbt", 'for last in "$@"; do :; done', 'echo "$last in $PWD"', "exit 7")
    monkeypatch.setattr(build_hook, "ROOT", checkout)
    assert build_hook.main(["sbt", "compile", "spark42/testOnly *Suite"]) == 7
    assert capfd.readouterr().out == f"spark42/testOnly *Suite in {checkout}\n"


def test_the_build_script_prints_one_message_for_an_error(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build_hook.main(["sbt", "compile"]) == 1
    assert capsys.readouterr().err == f"error: no java on PATH. {ADVICE}\n"


def test_a_file_that_cannot_be_written_is_one_message(
    checkout: Path,
    sbt_runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fill_the_disk(path: Path, *_: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(build_hook, "ROOT", checkout)
    monkeypatch.setattr(Path, "write_text", fill_the_disk)
    assert build_hook.main(["jars"]) == 1
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"error: cannot build in {checkout}: No space left on device: "
        f"{checkout}/target/jars/built.json.new"
    ]


def test_a_stopped_build_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(build_hook, "build_jars", stop)
    assert build_hook.main(["jars"]) == 130
    assert capsys.readouterr().err == "error: stopped. Run the same command again to start over\n"


@pytest.mark.parametrize("arguments", [[], ["jar"], ["jars", "--all"]])
def test_the_build_script_prints_its_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert build_hook.main(arguments) == 2
    assert "python python/build_hook.py jars" in capsys.readouterr().err


# What pyproject.toml repeats


def test_the_spark_extra_has_the_range_of_supported_versions() -> None:
    builds = [jars.parse_name(jar.name) for jar in jars.jar_folder().glob("*.jar")]
    minors = sorted(
        tuple(map(int, spark.minor.split("."))) for name in builds if name for spark in name.runs_on
    )
    (oldest, newest) = (minors[0], minors[-1])
    extra = f"pyspark>={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"
    assert f'spark = ["{extra}"]' in (ROOT / "pyproject.toml").read_text()

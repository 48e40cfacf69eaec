"""Check all that a release publishes, in clean environments: `make release-check`.

The wheel of `dist/` is used if it is there; `make dist` builds it. Files go to target/release:

- maven: the jars, their sources and the POMs, as `sbt publishAll` writes them
- sbom.json: the packages that the wheel installs, in the format CycloneDX

Then the program of the README runs with each Python and each Spark. Nothing is signed or uploaded.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer
import yaml
from rich.console import Console

import build_hook

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "target" / "release"
# The oldest and the newest of both. Spark 4.3 needs Python 3.11, and Spark 3.5 does not know 3.13.
ENVIRONMENTS = "python3.10=3.5,python3.13=4.3"
POM = {"": "http://maven.apache.org/POM/4.0.0"}
# Parts of a POM that repositories ask for, and that the build can know.
POM_PARTS = ("groupId", "artifactId", "version", "description", "licenses/license/name")
PROGRAM = re.compile(
    r"```python\n(?P<program>.*?)^```$.*?<!-- output: the Python above.*?-->\n```text\n"
    r"(?P<output>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


class CheckError(Exception):
    """A check that failed. The message says which one, and what to do."""


def run(*command: str | Path, env: dict[str, str] | None = None, folder: Path = ROOT) -> str:
    """Return what a command prints. Raises `CheckError` with its last lines if it fails."""
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()[-15:]
        raise CheckError("\n".join([f"{' '.join(map(str, command))} failed:", *lines]))
    return done.stdout


def version() -> str:
    """Return the version of the build."""
    text = (ROOT / "build.sbt").read_text("utf-8")
    return str(re.findall(r'version := "(.*)"', text)[0])


def metadata() -> str:
    """Compare the version with the changelog and the citation file."""
    heading = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]
    for file, found in (("CHANGELOG.md", heading), ("CITATION.cff", citation)):
        if found != version():
            raise CheckError(f"{file} has the version {found}, and build.sbt {version()}")
    return f"build, changelog and citation say {version()}"


def wheel() -> Path:
    """Return the wheel of this version. Build it unless it is there."""
    name = f"apportion-{version()}-py3-none-any.whl"
    file = ROOT / "dist" / name
    if not file.exists():
        run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", ROOT / "dist")
    if not file.exists():
        raise CheckError(f"the build wrote no {file}")
    return file


def maven() -> str:
    """Publish the jars into a folder, and check that each is complete."""
    repository = OUTPUT / "maven"
    shutil.rmtree(repository, ignore_errors=True)
    options = {**os.environ, "JAVA_TOOL_OPTIONS": f"-Dmaven.repo.local={repository}"}
    run(sys.executable, ROOT / "python" / "build_hook.py", "sbt", "publishAll", env=options)
    jars = [jar.stem for jar in build_hook.build_jars(ROOT)]
    for jar in jars:
        poms = list(repository.rglob(f"{jar}.pom"))
        if len(poms) != 1:
            raise CheckError(f"{repository} has {len(poms)} POMs of {jar}, not 1")
        files = [poms[0].with_name(f"{jar}{end}") for end in (".jar", "-sources.jar")]
        if missing := [file.name for file in files if not file.exists()]:
            raise CheckError(f"{poms[0].parent} has no {', '.join(missing)}")
        pom = ElementTree.parse(poms[0])
        if empty := [part for part in POM_PARTS if not pom.findtext(part, namespaces=POM)]:
            raise CheckError(f"{poms[0]} has no {', '.join(empty)}")
    return f"{len(jars)} jars with sources and POMs"


def environment(python: str, folder: Path, *packages: str | Path) -> Path:
    """Return the Python of a new virtual environment with packages."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return own


def sbom(file: Path) -> str:
    """Write the bill of materials of an environment that has only the wheel."""
    own = environment(sys.executable, OUTPUT / "venv-sbom", file)
    bill = OUTPUT / "sbom.json"
    program = Path(sys.executable).with_name("cyclonedx-py")
    run(program, "environment", own, "--output-reproducible", "--output-file", bill)
    shutil.rmtree(own.parents[1])
    return f"{bill.relative_to(ROOT)}"


def readme(python: str, spark: str, file: Path) -> str:
    """Run the README's program with a Python and a Spark, and compare what it prints."""
    found = PROGRAM.search((ROOT / "README.md").read_text("utf-8"))
    if not found:
        raise CheckError("README.md has no program with its output")
    folder = OUTPUT / "venv"
    own = environment(python, folder, file, f"pyspark=={spark}.*")
    program = OUTPUT / "readme.py"
    program.write_text(found["program"], "utf-8")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SPARK_"))}
    clean = {**inherited, "PYSPARK_PYTHON": str(own)}
    began = run(own, program, env=clean, folder=OUTPUT)
    shutil.rmtree(folder)
    if (lines := _comparable(began)) != (expected := _comparable(found["output"])):
        raise CheckError(
            f"the program of README.md prints with Python {python} and Spark {spark}:\n"
            + "\n".join(lines)
            + "\ninstead of:\n"
            + "\n".join(expected)
        )
    return "the program of the README prints what it should"


def _comparable(text: str) -> list[str]:
    """Return the lines without numbers: sizes depend on the version of the compression."""
    return [re.sub(r"\d[\d.,]*", "N", line) for line in text.strip().splitlines()]


def is_installed(python: str) -> bool:
    command = [python, "--version"]
    try:
        return not subprocess.run(command, capture_output=True, check=False).returncode
    except OSError:
        return False


def checks(environments: Mapping[str, str], jars: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and the outcome of each check."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    yield "version", metadata()
    file = wheel()
    yield "wheel", file.name
    if jars:
        yield "Maven", maven()
    yield "SBOM", sbom(file)
    for python, spark in environments.items():
        yield f"{python}, Spark {spark}", readme(python, spark, file)


def main(
    environments: Annotated[
        str,
        typer.Option(metavar="PYTHON=SPARK,...", help="Commands of Pythons, and their Spark."),
    ] = ENVIRONMENTS,
    jars: Annotated[
        bool, typer.Option(help="Also publish the jars into a folder. Needs sbt.")
    ] = True,
) -> None:
    """Check a release. Exit codes: 0 if all checks passed, 1 otherwise."""
    console, errors = Console(), Console(stderr=True)
    pairs = [each.rpartition("=") for each in environments.split(",")]
    if wrong := [spark for python, _, spark in pairs if not python]:
        errors.print(
            f"--environments {environments}: {wrong[0]} has no Python. Write PYTHON=SPARK, such as "
            f"{ENVIRONMENTS}",
            markup=False,
        )
        raise typer.Exit(2)
    known = {python: spark for python, _, spark in pairs if is_installed(python)}
    for python, _, _ in pairs:
        if python not in known:
            errors.print(f"{python} is not installed: not checked", markup=False)
    if not known:
        raise typer.Exit(1)
    try:
        for name, outcome in checks(known, jars):
            console.print(f"ok  {name}: {outcome}", markup=False, highlight=False)
    except CheckError as error:
        errors.print(f"error: {error}", markup=False, highlight=False)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    typer.run(main)

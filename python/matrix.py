"""Run the tests on all supported Spark versions, and write their table in docs/compatibility.md.

    python python/matrix.py            all versions
    python python/matrix.py 4.0 3.5    only these versions; the page keeps its other rows

The Scala tests run in sbt, on a Spark from Maven. The core of the Python
tests runs in a virtual environment for each version, with pip's newest pyspark of that version. The
output of the tests is in target/matrix.
"""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import build_hook
from apportion._spark import jars

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "matrix"
PAGE = ROOT / "docs" / "compatibility.md"
TABLE = re.compile(r"(<!-- versions: start -->\n\n)(.*?)(\n\n<!-- versions: end -->)", re.DOTALL)
VERSIONS = ROOT / "project" / "SparkVersion.scala"

# Tests that depend on the Spark version.
CORE = (
    "sql_tests",
    "python/tests/doctor",
    "python/tests/eventlog",
    "python/tests/explain",
    "python/tests/hints",
    "python/tests/keys",
    "python/tests/test_decide.py",
    "python/tests/test_decisions.py",
    "python/tests/test_golden_plugin.py",
    "python/tests/test_jars.py",
    "python/tests/test_measure.py",
    "python/tests/test_session.py",
    "python/tests/test_tables.py",
)

IN_TWO = ("-n", "2", "--dist", "loadfile")

# Older packages for versions whose newest pyspark needs an older numpy.
MORE_PACKAGES = {"3.5": ["pyarrow<21"]}

# Differences for users of Apportion.
DIFFERENT = {
    "4.3": "it is not in Maven; the jar has the same classes as a jar compiled against it",
    "4.0": "the branches of a union are always read separately",
    "3.5": "the branches of a union are always read separately; `EXPLAIN` does not show decisions; "
    "the Spark Connect server is a separate package",
}


@dataclass(frozen=True)
class Count:
    """Number of tests that passed, and number of tests that were not skipped."""

    passed: int
    of: int

    @property
    def is_green(self) -> bool:
        """Whether at least one test ran, and all tests passed."""
        return 0 < self.passed == self.of

    def __str__(self) -> str:
        return str(self.passed) if self.is_green else f"**{self.passed} of {self.of}**"


@dataclass(frozen=True)
class Result:
    """Test results of one jar on one Spark."""

    jar: str
    spark: jars.SparkVersion
    scala: Count | None
    """None if Maven does not have this Spark."""
    python: Count | None
    """None if pip does not have this Spark."""

    @property
    def is_green(self) -> bool:
        counts = [count for count in (self.scala, self.python) if count]
        return bool(counts) and all(count.is_green for count in counts)


def main(minors: Sequence[str]) -> int:
    """Run the tests, print the table, and return 1 if a test failed or a version is unknown."""
    names = {jar.name: jars.parse_name(jar.name) for jar in build_hook.build_jars(ROOT)}
    builds = {jar: name for jar, name in names.items() if name}
    runs = [(spark, jar) for jar, name in builds.items() for spark in name.runs_on]
    runs.sort(reverse=True)
    known = list(dict.fromkeys(spark.minor for spark, _ in runs))
    if unknown := [minor for minor in minors if minor not in known]:
        print(f"error: no jar for Spark {', '.join(unknown)}. Known: {', '.join(known)}")
        return 1
    in_sbt = set(re.findall(r'SparkVersion\("([\d.]+)"', VERSIONS.read_text("utf-8")))
    compiled = [name.spark for name in builds.values()]
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = [
        run(jar, spark, project(spark, compiled) if spark.minor in in_sbt else None)
        for spark, jar in runs
        if not minors or spark.minor in minors
    ]
    print("\n" + table(map(row, results)))
    PAGE.write_text(page(results, PAGE.read_text("utf-8")), "utf-8")
    return 0 if all(result.is_green for result in results) else 1


def project(spark: jars.SparkVersion, builds: Iterable[jars.SparkVersion]) -> str:
    """Return the name of a build's sbt project, as defined in project/SparkVersion.scala."""
    name = f"spark{spark.minor.replace('.', '')}"
    is_one_of_several = sum(build.minor == spark.minor for build in builds) > 1
    return name if not is_one_of_several else f"{name}_{spark.scala.replace('.', '_')}"


def run(jar: str, spark: jars.SparkVersion, name: str | None) -> Result:
    """Run the tests of one jar, and print their counts. `name` is the sbt project of the jar."""
    scala = None
    if name:
        print(f"{spark}: Scala tests ...", flush=True)
        scala = scala_tests(name)
        print(f"{spark}: {scala} Scala tests passed", flush=True)
    print(f"{spark}: Python tests ...", flush=True)
    python = python_tests(spark)
    print(f"{spark}: {python or 'no'} Python tests passed", flush=True)
    return Result(jar, spark, scala, python)


def scala_tests(name: str) -> Count:
    """Run the Scala tests of an sbt project."""
    log = f"{name}-scala"
    logged(log, build_hook.sbt_command(ROOT, [f"{name}/test"]))
    return counted_by_sbt((FOLDER / f"{log}.log").read_text("utf-8", errors="replace"))


def python_tests(spark: jars.SparkVersion) -> Count | None:
    """Run Python tests. Return None if pip does not have this Spark with this Scala version."""
    venv = FOLDER / f"venv-{spark.minor}"
    if not install(spark.minor, venv):
        return Count(0, 0)
    if not list(venv.glob(f"lib/*/site-packages/pyspark/jars/spark-core_{spark.scala}-*.jar")):
        return None
    name = f"spark-{spark.minor}-{spark.scala}-python"
    report = FOLDER / f"{name}.xml"
    report.unlink(missing_ok=True)
    python = str(venv / "bin" / "python")
    logged(name, [python, "-m", "pytest", *IN_TWO, f"--junitxml={report}", *CORE])
    return counted_by_pytest(report)


def install(minor: str, venv: Path) -> bool:
    """Create the virtual environment of a Spark version unless it exists. Return success."""
    done = venv / "installed"
    if not done.exists():
        create = [sys.executable, "-m", "venv", "--clear", str(venv)]
        packages = [
            "--editable",
            ".[demo,test]",
            f"pyspark=={minor}.*",
            *MORE_PACKAGES.get(minor, []),
        ]
        add = [str(venv / "bin" / "python"), "-m", "pip", "install", *packages]
        if logged(venv.name, create) and logged(venv.name, add):
            done.touch()
    return done.exists()


def logged(name: str, command: Sequence[str]) -> bool:
    """Run a command with its output in a file in target/matrix. Return whether it succeeded."""
    with (FOLDER / f"{name}.log").open("w") as log:
        run = subprocess.run(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return run.returncode == 0


def counted_by_sbt(log: str) -> Count:
    """Return the count in the output of sbt. sbt's total does not include cancelled tests."""
    total = re.search(r"Total (\d+), Failed \d+, Errors \d+, Passed (\d+)", log)
    return Count(passed=int(total[2]), of=int(total[1])) if total else Count(0, 0)


def counted_by_pytest(report: Path) -> Count:
    """Return the count in a JUnit report. The report is missing if pytest did not start."""
    cases = ET.parse(report).iter("testcase") if report.exists() else ()
    results = [{child.tag for child in case} for case in cases]
    ran = [result for result in results if "skipped" not in result]
    return Count(passed=sum(not result & {"failure", "error"} for result in ran), of=len(ran))


def row(result: Result) -> tuple[str, ...]:
    """Return the table cells of a result."""
    return (
        result.spark.minor,
        result.spark.scala,
        f"{result.spark.oldest_java} or newer",
        f"`{result.jar}`",
        "not in Maven" if result.scala is None else str(result.scala),
        "not in pip" if result.python is None else str(result.python),
        DIFFERENT.get(result.spark.minor, ""),
    )


def table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a Markdown table."""
    head = "Spark", "Scala", "Java", "Jar", "Scala tests", "Python tests", "Differences"
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ("---",) * 7, *rows))


def rows_in(table: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the rows of a table, by Spark and Scala version."""
    lines = re.findall(r"^\| (\d.*) \|$", table, re.MULTILINE)
    rows = (tuple(cell.strip() for cell in line.split(" | ")) for line in lines)
    return {cells[:2]: cells for cells in rows}


def page(results: Iterable[Result], before: str) -> str:
    """Return the page with a new table. It keeps the rows of versions that were not tested now."""
    start, kept, end = TABLE.split(before, 1)[1:4]
    rows = rows_in(kept) | {cells[:2]: cells for cells in map(row, results)}
    newest_first = (rows[build] for build in sorted(rows, reverse=True))
    return before.replace(f"{start}{kept}{end}", f"{start}{table(newest_first)}{end}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

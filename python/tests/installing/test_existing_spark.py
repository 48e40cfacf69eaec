"""A Spark that is there already, and an environment with the wheel but no package pyspark.

The commands of docs/deploying.md run as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apportion._spark import jars
from tests.bare import Bare

from .commands import QUERY, REASONS, options
from .distributions import Distributions

PYTHON = f"""
import apportion
spark.sql("{QUERY}").collect()
print(apportion.decisions(spark)[-1].reason)
"""
SCALA = f"""
spark.sql("{QUERY}").collect()
spark.sql("{REASONS}").collect().foreach(println)
"""
PROGRAM = f"""
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
{PYTHON}
"""
SESSION_OF_ITS_OWN = f"""
import apportion
from pyspark.sql import SparkSession
spark = apportion.configure(SparkSession.builder).getOrCreate()
{PYTHON}
"""


@pytest.fixture(scope="module")
def bare(built: Distributions, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bare]:
    with Bare(tmp_path_factory.mktemp("existing_spark"), built.wheel) as made:
        yield made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SPARK_HOME as a download of Spark has it, from the files of the package pyspark."""
    folder, package = tmp_path_factory.mktemp("spark"), jars.spark_home()
    for name in ("bin", "sbin", "jars"):
        (folder / name).symlink_to(package / name)
    (folder / "python").mkdir()
    (folder / "python" / "lib").symlink_to(package / "python" / "lib")
    (folder / "python" / "pyspark").symlink_to(package)
    return folder


@pytest.mark.parametrize(
    ("program", "more", "stdin"),
    [
        ("spark-submit", [], ""),
        pytest.param("spark-sql", ["-e", f"{QUERY}; {REASONS};"], "", marks=pytest.mark.slow),
        pytest.param("spark-shell", [], SCALA, marks=pytest.mark.slow),
        pytest.param("pyspark", [], PYTHON, marks=pytest.mark.slow),
    ],
)
def test_the_commands_of_the_deploying_page_run(
    program: str, more: list[str], stdin: str, bare: Bare, home: Path
) -> None:
    (bare.folder / "app.py").write_text(PROGRAM)
    jar = bare.run("apportion", "jar", SPARK_HOME=str(home)).strip()
    printed = bare.run(
        home / "bin" / program,
        *options(jar, program),
        *more,
        stdin=stdin,
        SPARK_HOME=str(home),
        # Python takes a pipe for no shell, unless told.
        PYSPARK_DRIVER_PYTHON_OPTS="-i",
    )
    assert "1 task: " in printed


@pytest.mark.slow
def test_spark_submit_runs_a_program_that_creates_its_session(bare: Bare, home: Path) -> None:
    (bare.folder / "app.py").write_text(SESSION_OF_ITS_OWN)
    submit = (home / "bin" / "spark-submit", "--master", "local[2]", "app.py")
    assert "1 task: " in bare.run(*submit, SPARK_HOME=str(home))


@pytest.mark.slow
def test_the_command_line_runs_with_the_python_files_of_spark_home(bare: Bare, home: Path) -> None:
    (py4j,) = (home / "python" / "lib").glob("py4j-*.zip")
    python = {"SPARK_HOME": str(home), "PYTHONPATH": f"{home}/python:{py4j}"}
    assert "HashAggregate: 1 task" in bare.run("apportion", "doctor", **python)


def test_a_missing_spark_is_an_error_with_the_package_to_install(bare: Bare) -> None:
    code = """
import apportion
try:
    apportion.get_or_create()
except apportion.ApportionError as error:
    print(error)
"""
    assert "pip install 'apportion[spark]'" in bare.python(code)

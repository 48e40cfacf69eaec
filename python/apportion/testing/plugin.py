"""Pytest plugin that runs the statements of `.sql` files and compares them with golden files.

It collects the `.sql` files below the directories in the ini option `apportion_sql_tests`. Each
statement is a test, such as `sql_tests/joins.sql::inner join`. It can run alone, in any order, and
under pytest-xdist, because the setups above it run first.

Each file runs in a new session of the fixture `apportion_spark`. The default is a session with two
cores. For another session, such as a Spark Connect client, define a session-scoped fixture of this
name in conftest.py. Put tables that all files share into its catalog, because temporary views
belong to one session.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from apportion.testing import golden
from apportion.testing.script import Script, ScriptError, Statement, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from apportion.testing.run import ScriptRun

_UPDATE = "--apportion-update-golden"
_DIRECTORIES = "apportion_sql_tests"
_changes = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("apportion").addoption(
        _UPDATE,
        action="store_true",
        help="write the results of SQL statements to their golden files instead of comparing",
    )
    parser.addini(
        _DIRECTORIES, "directories of .sql files to run as golden tests", type="paths", default=[]
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_changes] = []
    for directory in config.getini(_DIRECTORIES):
        if not directory.is_dir():
            raise pytest.UsageError(f"{_DIRECTORIES} lists {directory}, which is not a directory")
    if config.getoption(_UPDATE) and getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(f"{_UPDATE} writes to shared files: run pytest without -n")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    # A listed directory can have `..` in its path, and the path of a file has none.
    directories = [Path(os.path.normpath(each)) for each in parent.config.getini(_DIRECTORIES)]
    if not any(directory in file_path.parents for directory in directories):
        return None
    if file_path.suffix == ".sql":
        return SqlFile.from_parent(parent, path=file_path)
    if file_path.suffix == ".golden" and not file_path.with_suffix(".sql").exists():
        return OrphanGolden.from_parent(parent, path=file_path)
    return None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.getoption(_UPDATE):
        terminalreporter.section("golden files")
        for change in config.stash[_changes] or ["nothing changed"]:
            terminalreporter.line(change)


@pytest.fixture(scope="session")
def apportion_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark session for SQL golden tests: the running session, or a new one."""
    from apportion._spark import jars
    from apportion.session import configure, get_or_create

    jars.pyspark_folder()  # Raises a helpful error if pyspark is not installed.
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        yield get_or_create()
        return
    warehouse = tmp_path_factory.mktemp("warehouse")
    builder = SparkSession.builder.master("local[2]").appName("SQL golden tests")
    builder.config("spark.ui.enabled", "false")
    builder.config("spark.sql.session.timeZone", "UTC")
    builder.config("spark.sql.warehouse.dir", str(warehouse))
    spark = configure(builder).getOrCreate()
    yield spark
    spark.stop()


class SqlFile(pytest.File):
    """A `.sql` file with its statements and its golden file."""

    _script: Script
    _run: ScriptRun | None = None

    def collect(self) -> Iterator[pytest.Item]:
        file = self.path
        try:
            self._script = parse(file.read_text(encoding="utf-8-sig"), _shown(self, file))
            file = self._golden
            goldens = golden.read(file)
        except (ScriptError, golden.GoldenError) as error:
            raise self.CollectError(str(error)) from None
        except UnicodeDecodeError as error:
            raise self.CollectError(f"{_shown(self, file)}: {error}") from None
        for statement in self._script.statements:
            yield SqlItem.create(self, statement.name, statement.line, self._test(statement))
        statements = self._script.statements
        compared = [each.name for each in statements if each.options.error is None]
        if stale := [name for name in goldens if name not in compared]:
            yield SqlItem.create(self, "stale golden", 1, self._test_stale(stale))

    def teardown(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None

    @property
    def _golden(self) -> Path:
        return self.path.with_suffix(".golden")

    def _test(self, statement: Statement) -> Callable[..., None]:
        def test(apportion_spark: SparkSession) -> None:
            versions = statement.options.spark
            if versions and not versions.has(apportion_spark.version):
                pytest.skip(f"for Spark {versions}")
            entry = self._entry(statement, apportion_spark)
            if entry is not None:
                self._compare(statement, entry)

        return test

    def _test_stale(self, stale: list[str]) -> Callable[..., None]:
        def test() -> None:
            if not self.config.getoption(_UPDATE):
                _fail(
                    f"{_shown(self, self._golden)} has entries without a statement: "
                    f"{', '.join(stale)}. Run pytest {_UPDATE} to remove them"
                )
            entries = golden.read(self._golden)
            golden.write(self._golden, {k: v for k, v in entries.items() if k not in stale})
            for name in stale:
                _note(self, f"{_shown(self, self._golden)}: removed {name!r}")

        return test

    def _entry(self, statement: Statement, spark: SparkSession) -> golden.Entry | None:
        from apportion.testing.run import ScriptRun, StatementError

        try:
            if self._run is None:
                self._run = ScriptRun(self._script, _shown(self, self.path), spark)
            return self._run.run(statement)
        except StatementError as error:
            # Otherwise pytest would also print each error that led to this one.
            raise pytest.fail.Exception(str(error), pytrace=False) from None

    def _compare(self, statement: Statement, entry: golden.Entry) -> None:
        shown = _shown(self, self._golden)
        entries = golden.read(self._golden)
        expected = entries.get(statement.name)
        if entry == expected:
            return
        if self.config.getoption(_UPDATE):
            order = [*(each.name for each in self._script.statements), *entries]
            entries[statement.name] = entry
            golden.write(self._golden, {name: entries[name] for name in order if name in entries})
            _note(self, f"{shown}: {'added' if expected is None else 'changed'} {statement.name!r}")
        elif expected is None:
            _fail(f"{shown} has no entry for {statement.name!r}: run pytest {_UPDATE}")
        else:
            diff = golden.difference(shown, expected, entry)
            _fail(
                f"the result of {statement.name!r} differs from {shown}:\n\n{diff}\n\n"
                f"If the new result is right, run pytest {_UPDATE}"
            )


class OrphanGolden(pytest.File):
    """A `.golden` file without a `.sql` file."""

    def collect(self) -> Iterator[pytest.Item]:
        yield SqlItem.create(self, "stale golden", 1, self._test)

    def _test(self) -> None:
        shown = _shown(self, self.path)
        if not self.config.getoption(_UPDATE):
            _fail(f"{shown} has no .sql file. Run pytest {_UPDATE} to remove it")
        self.path.unlink()
        _note(self, f"{shown}: removed")


class SqlItem(pytest.Function):
    """A test that pytest reports at a line of a `.sql` or `.golden` file."""

    _line: int

    @classmethod
    def create(
        cls, parent: pytest.File, name: str, line: int, test: Callable[..., None]
    ) -> pytest.Item:
        item = cls.from_parent(parent, name=name, callobj=test)
        item._line = line
        return item

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self._line - 1, self.name


def _shown(node: pytest.Collector, path: Path) -> str:
    """Return the path relative to the project's root."""
    root = node.config.rootpath
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _note(node: pytest.Collector, change: str) -> None:
    node.config.stash[_changes].append(change)


def _fail(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)

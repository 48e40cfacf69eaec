"""The statements of a script, run on a session."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from apportion._spark import jvm
from apportion.decision import Decision, decisions_taken
from apportion.errors import ApportionError
from apportion.session import confs
from apportion.testing.render import decision_lines, printable, row_lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from apportion.testing.golden import Entry
    from apportion.testing.script import Block, Script, Statement


class StatementError(ApportionError):
    """A statement, or what runs before it, that did not do what the script says."""


class ScriptRun:
    """A script on a session of its own: no view and no setting leaks to another script."""

    def __init__(self, script: Script, path: str, spark: SparkSession) -> None:
        self._path = path
        self._session = _session_of_its_own(spark)
        self._setups_done = 0
        for key, value in script.settings.items():
            try:
                self._session.conf.set(key, value)
            except Exception as error:
                raise StatementError(f"{path}: 'set: {key} = {value}' failed: {error}") from error

    def run(self, statement: Statement) -> Entry | None:
        """Run a statement, and before it what is still to run of the setups above it.

        Returns its schema, rows and decisions as lines of text, and None for one that failed as it
        should. Raises `StatementError` when it failed and should not have, failed with another
        error, or did not fail; and when a setup failed.
        """
        for setup in statement.setups[self._setups_done :]:
            self._set_up(setup)
            self._setups_done += 1
        where = f"{self._path}:{statement.line}: statement {statement.name!r}"
        expected = statement.options.error
        try:
            entry = self._entry(statement)
        except Exception as error:
            if expected is None:
                raise StatementError(f"{where} failed: {error}") from error
            if expected not in str(error):
                raise StatementError(
                    f"{where} failed, but not with {expected!r}: {error}"
                ) from error
            return None
        if expected is not None:
            raise StatementError(f"{where} did not fail, expected {expected!r}")
        return entry

    def close(self) -> None:
        """Uncache what the script cached: Spark's sessions share one cache."""
        self._session.catalog.clearCache()

    def _set_up(self, setup: Block) -> None:
        try:
            with confs(self._session, setup.settings):
                self._session.sql(setup.sql).collect()
        except Exception as error:
            raise StatementError(f"{self._path}:{setup.line}: setup failed: {error}") from error

    def _entry(self, statement: Statement) -> Entry:
        options = statement.options
        taken: list[Decision] = []
        with ExitStack() as stack:
            if options.decisions:
                taken = stack.enter_context(decisions_taken(self._session))
            stack.enter_context(confs(self._session, statement.settings))
            frame = self._session.sql(statement.sql)
            schema = frame.schema
            rows = frame.collect()
        lines = row_lines(rows, schema, ordered=options.ordered, digits=options.digits)
        return (
            f"-- schema: {printable(schema.simpleString())}",
            *lines,
            f"-- rows: {len(lines)}",
            *(f"-- decision: {line}" for line in decision_lines(taken)),
        )


def _session_of_its_own(spark: SparkSession) -> SparkSession:
    # Spark Connect's clients have no newSession; since 4.1 a clone begins with what theirs has.
    clone: Callable[[], SparkSession] | None = getattr(spark, "cloneSession", None)
    if clone is not None:
        return clone()
    if jvm.is_classic(spark):
        return spark.newSession()
    session_class: Any = type(spark)
    own: SparkSession = session_class(spark.client._builder)
    for key, value in _set_in(spark).items() - _set_in(own).items():
        if own.conf.isModifiable(key):
            own.conf.set(key, value)
    return own


def _set_in(spark: SparkSession) -> dict[str, str]:
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}

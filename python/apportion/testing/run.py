"""Runs the statements of a script on a session."""

from __future__ import annotations

import re
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


_CACHE = re.compile(r"^\s*CACHE\s+(?:LAZY\s+)?TABLE\s+([\w.`]+)", re.IGNORECASE | re.MULTILINE)


class StatementError(ApportionError):
    """A statement or a setup that did not behave as the script says."""


class ScriptRun:
    """Run of a script in its own session, so that views and settings do not leak."""

    def __init__(self, script: Script, path: str, spark: SparkSession) -> None:
        self._path = path
        self._session = _new_session(spark)
        self._setups_done = 0
        self._cached: list[str] = []
        for key, value in script.settings.items():
            try:
                self._session.conf.set(key, value)
            except Exception as error:
                raise StatementError(f"{path}: 'set: {key} = {value}' failed: {error}") from error

    def run(self, statement: Statement) -> Entry | None:
        """Run the remaining setups above a statement, then the statement.

        Returns its schema, rows and decisions as lines of text, or None if it failed with the
        expected error. Raises `StatementError` for an unexpected error, for a missing error, and
        for a setup that fails.
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
        """Remove what this script cached. All sessions share one cache with the user's tables."""
        for table in self._cached:
            self._session.sql(f"UNCACHE TABLE IF EXISTS {table}")

    def _set_up(self, setup: Block) -> None:
        try:
            with confs(self._session, setup.settings):
                self._note_cache(setup.sql)
                self._session.sql(setup.sql).collect()
        except Exception as error:
            raise StatementError(f"{self._path}:{setup.line}: setup failed: {error}") from error

    def _note_cache(self, sql: str) -> None:
        """Remember a table that the SQL caches, unless it is in the cache already."""
        if match := _CACHE.search(sql):
            table = match[1]
            catalog = self._session.catalog
            if not (catalog.tableExists(table.replace("`", "")) and catalog.isCached(table)):
                self._cached.append(table)

    def _entry(self, statement: Statement) -> Entry:
        options = statement.options
        taken: list[Decision] = []
        with ExitStack() as stack:
            if options.decisions:
                taken = stack.enter_context(decisions_taken(self._session))
            stack.enter_context(confs(self._session, statement.settings))
            self._note_cache(statement.sql)
            frame = self._session.sql(statement.sql)
            schema = frame.schema
            rows = jvm.collect(frame)
        lines = row_lines(rows, schema, ordered=options.ordered, digits=options.digits)
        return (
            f"-- schema: {printable(schema.simpleString())}",
            *lines,
            f"-- rows: {len(lines)}",
            *(f"-- decision: {line}" for line in decision_lines(taken)),
        )


def _new_session(spark: SparkSession) -> SparkSession:
    # Spark Connect clients have no newSession. Since 4.1, they can clone the session instead.
    clone: Callable[[], SparkSession] | None = getattr(spark, "cloneSession", None)
    if clone is not None:
        return clone()
    if jvm.is_classic(spark):
        return spark.newSession()
    session_class: Any = type(spark)
    session: SparkSession = session_class(spark.client._builder)
    for key, value in jvm.session_conf(spark).items() - jvm.session_conf(session).items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    return session

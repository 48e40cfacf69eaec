"""Tables of a command, and the message for a missing one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from apportion.cli.support.console import QUERY_FAILED, fail
from apportion.cli.support.table_files import Table
from apportion.errors import QueryError, did_you_mean
from apportion.sql.statements import Statement

_MISSING_TABLE = re.compile(r"\[TABLE_OR_VIEW_NOT_FOUND\] .*`(?P<table>[^`]+)` cannot be found\.")
_PLACE = re.compile(r"\bline (\d+)(,? pos(?:ition)? )(\d+)")


def in_file(error: QueryError, statement: Statement, title: str) -> QueryError:
    """Return the error of a statement with its number, and with places in the whole file.

    Without a `title`, the message only gets the places.
    """

    def moved(place: re.Match[str]) -> str:
        line, column = int(place[1]), int(place[3])
        # Only the first line of a statement can begin after others.
        column += statement.column - 1 if line == 1 else 0
        return f"line {line + statement.line - 1}{place[2]}{column}"

    message = _PLACE.sub(moved, str(error))
    return QueryError(f"{message}\n{title} (line {statement.line}) failed" if title else message)


@contextmanager
def query_errors(tables: Mapping[str, Table]) -> Iterator[None]:
    """End the command with Spark's message if a query of the block fails.

    For a missing table, add the names of known tables.
    """
    try:
        yield
    except QueryError as error:
        missing = _MISSING_TABLE.match(str(error))
        if not missing:
            fail(str(error), QUERY_FAILED)
        nearest = did_you_mean(missing["table"], tables)
        names = f"Tables: {', '.join(tables)}"
        known = names if tables else "Name a directory of tables with --tables"
        fail(f"{missing[0]}{nearest} {known}")

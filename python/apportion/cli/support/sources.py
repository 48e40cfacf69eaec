"""Reads the SQL files of a command."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from apportion._util.paths import existing_path
from apportion.cli.support.console import fail, note
from apportion.errors import ApportionError, QueryError, did_you_mean
from apportion.redaction import one_line
from apportion.sql.files import find_sql_files
from apportion.sql.statements import Statement, split

_STANDARD_INPUT = "-"
_PLACE = re.compile(r"\bline (\d+)(,? pos(?:ition)? )(\d+)")


class Source(NamedTuple):
    """SQL text and its name for messages."""

    name: str
    sql: str


def list_sources(path: str) -> list[str]:
    """Return a file or standard input (`-`) itself, or all `.sql` files below a directory.

    Hidden files are skipped. Ends the command if there is no file.
    """
    directory = existing_path(path)
    if path == _STANDARD_INPUT or not directory or not directory.is_dir():
        return [path]
    files = find_sql_files(directory)
    if not files:
        fail(f"{path} contains no .sql files: name the files themselves, or another directory")
    return [str(file) for file in files]


def read_source(name: str) -> Source:
    """Return the SQL of a file or of standard input (`-`).

    Raises `ApportionError` if it cannot be read.
    """
    shown = "<stdin>" if name == _STANDARD_INPUT else name
    try:
        content = sys.stdin.buffer.read() if name == _STANDARD_INPUT else Path(name).read_bytes()
        return Source(shown, content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8. SQL files must be UTF-8"
    except OSError as error:
        reason = error.strerror or str(error)
    except AttributeError:  # Python has no sys.stdin if it was closed before the start.
        reason = "it is closed"
    raise ApportionError(f"cannot read {one_line(shown)}: {reason}")


def read_statements(file: str) -> list[Statement]:
    """Return the statements of an SQL file, or of standard input (`-`), and note wrong hints.

    Ends the command if the file does not exist. Raises the errors of `read_source` and `split`.
    """
    if file != _STANDARD_INPUT:
        path = Path(file)
        if not existing_path(file):
            siblings = [sibling.name for sibling in path.parent.glob("*")]
            fail(f"there is no file {file}.{did_you_mean(path.name, siblings)}")
        if path.is_dir():
            fail(f"{file} is a directory: name an SQL file")
    source = read_source(file)
    statements = split(source.sql)
    _note_wrong_hints(source)
    return statements


@contextmanager
def errors_in_file(statements: Sequence[Statement]) -> Iterator[Iterator[Statement]]:
    """Yield an iterator over statements, and name the one whose `QueryError` ends the block."""
    number = 0

    def each() -> Iterator[Statement]:
        nonlocal number
        for number, statement in enumerate(statements, 1):  # noqa: B007
            yield statement

    try:
        yield each()
    except QueryError as error:
        if number == 0:
            raise
        title = f"Statement {number} of {len(statements)}" if len(statements) > 1 else ""
        raise in_file(error, statements[number - 1], title) from error


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


def _note_wrong_hints(source: Source) -> None:
    """Note what `apportion lint` finds. Spark only logs it, and commands hide Spark's log."""
    if "+" not in source.sql:
        return
    # To import sqlglot takes a third of a second.
    from apportion.hints import lint
    from apportion.hints.findings import sentence

    for finding in lint(source.sql):
        place = f"{one_line(source.name)}:{finding.line}:{finding.column}"
        note(f"{place}: {finding.severity} {finding.code} {one_line(sentence(finding))}")


def read_queries(paths: Sequence[str]) -> dict[str, str]:
    """Return the queries in these files and directories by name, such as `report:2`.

    A name is the path of the file below the common directory of all files, and the number of the
    statement in the file. Ends the command for a statement that is not a query, and in the cases of
    `list_sources`. Raises the errors of `read_source`.
    """
    sources = [read_source(name) for path in paths for name in list_sources(path)]
    files = [Path(source.name).resolve() for source in sources]
    root = os.path.commonpath([file.parent for file in files])
    queries = {}
    for source, file in zip(sources, files, strict=True):
        try:
            statements = split(source.sql)
        except ApportionError as error:
            fail(f"{source.name}: {error}")
        for number, statement in enumerate(statements, 1):
            name = f"{file.relative_to(root).with_suffix('').as_posix()}:{number}"
            if not statement.is_query:
                fail(
                    f"{source.name}: statement {number} (line {statement.line}) is not a query. It "
                    "may change data, and only queries can run several times"
                )
            if name in queries:
                fail(f"{source.name}: another file has queries named {name.partition(':')[0]}")
            queries[name] = statement.text
    return queries

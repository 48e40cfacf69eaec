"""Reads the files of SQL that a command is given."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from apportion._util.paths import found
from apportion.cli.support.console import fail
from apportion.errors import ApportionError, did_you_mean
from apportion.sql.statements import Statement, split

_STANDARD_INPUT = "-"


class Source(NamedTuple):
    """A text of SQL, and what to call it."""

    name: str
    sql: str


def read_sources(path: str) -> list[Source]:
    """Return the texts of a file of SQL, of all `.sql` files below a directory, or of `-`.

    Hidden files are passed over. Ends the command where there is nothing to read.
    """
    if path == _STANDARD_INPUT:
        return [Source("<stdin>", _decode("<stdin>", sys.stdin.buffer.read()))]
    directory = found(path)
    if not directory or not directory.is_dir():
        return [_read(Path(path))]
    files = sorted(file for file in directory.rglob("*.sql") if _is_source(file, directory))
    if not files:
        fail(f"{path} has no .sql files in it: name the files to check, or another directory")
    return [_read(file) for file in files]


def _is_source(file: Path, below: Path) -> bool:
    parts = file.relative_to(below).parts
    return file.is_file() and not any(part.startswith(".") for part in parts)


def _read(file: Path) -> Source:
    try:
        return Source(str(file), _decode(str(file), file.read_bytes()))
    except OSError as error:
        fail(f"cannot read {file}: {error.strerror}")


def _decode(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fail(f"cannot read {name}: byte {error.start} is not UTF-8, which SQL files have to be")


def read_statements(file: str) -> list[Statement]:
    """Return the statements of a file of SQL, or of `-`.

    Ends the command for a file that is not there or no text; raises `ApportionError` as `split`
    does.
    """
    if file != _STANDARD_INPUT:
        path = Path(file)
        if not found(file):
            siblings = [each.name for each in path.parent.glob("*")]
            fail(f"there is no file {file}.{did_you_mean(path.name, siblings)}")
        if path.is_dir():
            fail(f"{file} is a directory: name a file of SQL")
    return [statement for source in read_sources(file) for statement in split(source.sql)]


def read_queries(paths: Sequence[str]) -> dict[str, str]:
    """Return the queries in these files and directories by name, such as `report:2`.

    A name is that of the file, below the directory that holds all of them, and the number of the
    statement in it. Ends the command for a statement that is no query, and as `read_sources` does.
    """
    sources = [source for path in paths for source in read_sources(path)]
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
                fail(f"{source.name}: statement {number} is no query, and only queries are run")
            if name in queries:
                fail(
                    f"{source.name}: another file has the queries {name.partition(':')[0]} already"
                )
            queries[name] = statement.text
    return queries

"""Reads statements with sqlglot's parser, if it can read them in little time."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from apportion.sql.tokens import tokenize

# sqlglot's time doubles with each level of calls that are named like types, as in
# struct(struct(...)). Ten levels take less than 0.1 s.
_DEEPEST = 10
_LONGEST = 100_000


def parse(sql: str) -> exp.Expr | None:
    """Return the tree of a statement, or None if sqlglot cannot read it in little time."""
    depth = 0
    for token in tokenize(sql).tokens:
        depth += (token.word == "(") - (token.word == ")")
        if depth > _DEEPEST:
            return None
    if len(sql) > _LONGEST:
        return None
    # For SQL that it does not know, sqlglot raises many kinds of errors, such as IndexError.
    with suppress(Exception), _without_logging():
        return sqlglot.parse_one(sql, read="spark")
    return None


def find_scopes(sql: str) -> list[Scope]:
    """Return the scopes of a query, inner ones first, or none if sqlglot cannot read it."""
    tree = parse(sql)
    with suppress(Exception), _without_logging():
        return traverse_scope(tree) if isinstance(tree, exp.Query) else []
    return []


@contextmanager
def _without_logging() -> Iterator[None]:
    """Keep sqlglot from warning about statements that only Spark knows."""
    logger = logging.getLogger("sqlglot")
    was_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was_disabled

"""Finds the tables in the FROM of each block, with sqlglot.

sqlglot reads the tables of a FROM alone, as a list without subqueries and conditions. So it also
reads blocks of statements that it does not know as a whole, and the time is linear.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from sqlglot import exp

from apportion.sql.blocks import Block
from apportion.sql.code import Code
from apportion.sql.parsing import DEEPEST, find_scopes
from apportion.sql.templates import FILLER, mask

_SELECT = "SELECT 1 FROM "
# Stands for a subquery. No subquery is shorter.
_SUBQUERY = "FROM x"
# The tokens to read, for each character of the text. Each SELECT of a pipeline reads all tables
# before it.
_READINGS = 5
_RENAMED = "|> AS"


class Relation(NamedTuple):
    """A table, view, subquery or function in the FROM of a block, with its name for hints.

    `names` are the parts of the name in lower case, or the alias alone if one exists. A part is
    None if a template renders to it. `text` is the alias or name in the text.
    """

    names: tuple[str | None, ...]
    text: str
    start: int

    def is_named(self, parts: tuple[str, ...]) -> bool:
        """Tell whether a hint means this relation. As Spark does, compare the last parts."""
        names = self.names[-len(parts) :]
        return len(names) == len(parts) and all(
            own is None or own == part for own, part in zip(names, parts, strict=True)
        )


class Relations:
    """The relations of a block in the order of the text."""

    def __init__(self, found: list[Relation]) -> None:
        self.found = sorted(found, key=lambda relation: relation.start)
        self._by_name: dict[str | None, list[Relation]] = {}
        for relation in self.found:
            self._by_name.setdefault(relation.names[-1], []).append(relation)

    def find(self, parts: tuple[str, ...]) -> Relation | None:
        """Return the first relation that a hint means by a name, or None."""
        near = self._by_name.get(parts[-1], []) + self._by_name.get(None, [])
        named = (relation for relation in near if relation.is_named(parts))
        return min(named, key=lambda relation: relation.start, default=None)

    @property
    def has_template(self) -> bool:
        """Whether a template renders to a whole relation, which can be a join."""
        return any(relation.names == (None,) for relation in self._by_name.get(None, []))


class RelationsReader:
    """Reads the relations of the blocks of one text."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._masked = mask(sql).sql
        self._budget = _READINGS * len(sql) + 1000

    def read(self, block: Block) -> Relations | None:
        """Return the relations of a block, or None if sqlglot cannot read them.

        Its subqueries are blocks of their own.
        """
        try:
            pieces = list(self._select(block.code, block.low, block.high, 0))
        except RecursionError:
            return None
        return self._parse(pieces) if pieces else Relations([])

    def _select(self, code: Code, low: int, high: int, depth: int) -> Iterator[tuple[int, str]]:
        """Yield the offset and the text of each token of the FROM that sqlglot needs."""
        is_from, is_condition = depth > 0, False
        for index in code.outside_parentheses(low, high):
            self._budget -= 1
            if depth > DEEPEST or self._budget < 0:
                raise RecursionError
            word, token = code.word(index), code.tokens[index]
            is_table = word == "TABLE" and index == low and depth == 0
            if is_table or (word == "FROM" and code.is_from(index)):
                is_from, is_condition = True, False
                yield token.start, ","
            elif word == "|>":
                is_from, is_condition = code.is_join(index + 1), False
            elif word == "AS" and code.word(index - 1) == "|>":
                is_from = True
                yield token.start, _RENAMED
            elif word in ("ON", "USING") and is_from:
                is_from, is_condition = False, True
            elif not (is_from or is_condition):
                continue
            elif code.is_end_of_from(index):
                is_from = is_condition = False
            elif is_from or (is_condition and code.is_next_relation(index)):
                is_from, is_condition = True, False
                if code.is_join(index):
                    # sqlglot needs exponential time for joins without conditions.
                    if word == "JOIN":
                        yield token.start, ","
                elif token.kind != "hint start":
                    yield token.start, self._masked[token.start : token.end]
                if word == "(":
                    yield from self._select_inside(code, index + 1, code.closing(index), depth)

    def _select_inside(
        self, code: Code, low: int, high: int, depth: int
    ) -> Iterator[tuple[int, str]]:
        is_other_query = code.word(low) in ("VALUES", "TABLE", "MAP") and code.word(low + 1) != "("
        if code.is_query(low, high) or is_other_query:
            yield code.tokens[low].start, _SUBQUERY
        else:
            yield from self._select(code, low, high, depth + 1)
        yield code.tokens[high].start, ")"

    def _parse(self, pieces: list[tuple[int, str]]) -> Relations | None:
        """Return the relations in these tokens, which keep their distances."""
        renamed = max(
            (place for place, (_, text) in enumerate(pieces) if text == _RENAMED), default=0
        )
        _, *pieces = pieces[renamed:]
        if not pieces:
            return None
        base = position = pieces[0][0]
        texts = [_SELECT]
        for start, text in pieces:
            texts += (" " * (start - position), text)
            position = start + len(text)
        scopes = find_scopes("".join(texts), ())
        if not scopes:
            return None
        sources: list[exp.Expr] = []
        sources += (*scopes[-1].tables, *scopes[-1].derived_tables, *scopes[-1].udtfs)
        sources += [pivot for source in sources for pivot in source.args.get("pivots") or ()]
        described = (self._describe(source, base - len(_SELECT)) for source in sources)
        return Relations([relation for relation in described if relation])

    def _describe(self, source: exp.Expr, offset: int) -> Relation | None:
        alias = source.args.get("alias")
        named = alias.this if isinstance(alias, exp.TableAlias) else alias
        if isinstance(source, exp.Values) and not named:
            # sqlglot gives the alias of VALUES 1, 2 AS t to the last row.
            named = source.expressions[-1].expressions[-1].args.get("alias")
        table = source.this if isinstance(source, exp.Table) else None
        if not named and (table is None or isinstance(table, exp.Func)):
            # Only IDENTIFIER('t') is a table.
            is_open = table is not None and table.name.upper() == "IDENTIFIER"
            return Relation((None,), source.sql(), offset) if is_open else None
        parts = [named] if named else cast(exp.Table, source).parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            return Relation((None,), source.sql(), offset)
        names = tuple(None if FILLER in part.name else part.name.lower() for part in parts)
        if "start" not in parts[0].meta or "end" not in parts[-1].meta:
            return Relation(names, ".".join(part.name for part in parts), 0)
        start, end = parts[0].meta["start"] + offset, parts[-1].meta["end"] + offset + 1
        return Relation(names, self._sql[start:end], start)

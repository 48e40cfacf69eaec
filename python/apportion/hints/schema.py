"""Checks that need the tables of a schema: unknown tables, and hints of blocks without shuffles.

sqlglot reads the whole statement. In doubt there is no finding: if sqlglot cannot read the
statement, if a table is not known to be one, or if an unknown function can be an aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import MappingSchema, exp
from sqlglot.errors import OptimizeError, SchemaError
from sqlglot.optimizer.scope import Scope

from apportion.errors import InputError
from apportion.hints import grammar
from apportion.hints.findings import Complaint, complain
from apportion.sql.blocks import Block, StatementBlocks
from apportion.sql.parsing import find_scopes
from apportion.sql.templates import FILLER, TAG, mask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tells whether a name is a table. None is a view, whose query is not known.
FindTable = Callable[[exp.Table], bool | None]

_MARK = "BLOCK_"
# Hints without effect on a block that shuffles nothing.
_OF_SHUFFLES = ("PARALLELISM", "DATA_VOLUME", "BROADCAST_RATIO", "RANGES")
_SHUFFLING = ("joins", "group", "distinct", "order", "sort", "cluster", "distribute", "laterals")
_SHUFFLING_NODES = (
    exp.AggFunc, exp.Window, exp.SetOperation, exp.Join, exp.Anonymous, exp.AnonymousAggFunc,
)  # fmt: skip
_REPARTITIONS = ("REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE")


def find_table_in(schema: Mapping[str, Any] | SparkSession) -> FindTable:
    """Return a search in a schema: `{table: {column: type}}`, or the tables of a session.

    Databases may be keys around the tables: `{database: {table: {column: type}}}`. Raises
    `InputError` for another form.
    """
    if not isinstance(schema, Mapping) and not hasattr(schema, "catalog"):
        raise InputError(
            f"the schema is {schema!r}: allowed is {{table: {{column: type}}}} or a session"
        )
    find = (
        _find_in_mapping(schema)
        if isinstance(schema, Mapping)
        else partial(_find_in_session, schema)
    )
    return lambda table: find(table) if _has_name(table) else None


def _find_in_mapping(schema: Mapping[str, Any]) -> FindTable:
    form = "the schema must have the form {table: {column: type}}"
    # sqlglot's message does not name such a table.
    if empty := next(_find_empty(schema), None):
        raise InputError(f"{form}: {empty} has no columns")
    try:
        known = MappingSchema(dict(schema), dialect="spark")
        depth = len(known.supported_table_args) or 1
    except (SchemaError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{form}: {error}") from None

    def find(table: exp.Table) -> bool:
        names = [exp.to_identifier(part.name.lower()) for part in table.parts[-depth:]]
        path = dict(zip(("this", "db", "catalog"), reversed(names), strict=False))
        try:
            return known.find(exp.Table(**path)) is not None
        except SchemaError:  # several databases have a table of this name
            return True

    return find


def _find_empty(schema: Mapping[str, Any], around: str = "") -> Iterator[str]:
    """Yield the names of tables without columns."""
    for name, columns in schema.items():
        if isinstance(columns, Mapping) and columns:
            yield from _find_empty(columns, f"{around}{name}.")
        elif isinstance(columns, Mapping) or not around:
            yield f"{around}{name}"


def _find_in_session(spark: SparkSession, table: exp.Table) -> bool | None:
    from pyspark.errors import PySparkException

    name = ".".join(part.sql(dialect="spark", identify=True) for part in table.parts)
    try:
        if not spark.catalog.tableExists(name):
            return False
        return True if spark.catalog.getTable(name).tableType in ("MANAGED", "EXTERNAL") else None
    except PySparkException:  # such as of a catalog that is not configured
        return None


def _has_name(table: exp.Table) -> bool:
    """Tell whether a source is a table with a name, and not a table function or a file's path."""
    return isinstance(table.this, exp.Identifier) and "/" not in table.name


def check(sql: str, statement: StatementBlocks, find_table: FindTable) -> Iterator[Complaint]:
    """Yield the problems with the hints of a statement in this schema."""
    if not any(block.hints for block in statement.blocks):
        return
    for scope in find_scopes(_mark_blocks(sql, statement)):
        hint = scope.expression.args.get("hint")
        if hint:
            block = statement.blocks[int(hint.expressions[0].name.removeprefix(_MARK))]
            yield from _find_unknown_tables(block, scope, find_table)
            repartitions = any(hint.name in _REPARTITIONS for hint in block.hints)
            if not (repartitions or _shuffles(scope, find_table)):
                yield from _report_without_shuffle(block)


def _mark_blocks(sql: str, statement: StatementBlocks) -> str:
    """Return the statement without templates, with the number of each block as its hint."""
    start = statement.start
    masked = mask(sql[start : statement.end]).sql.replace(TAG, " ")
    pieces: list[str] = []
    position = 0
    for number, block in enumerate(statement.blocks):
        select = block.select.end - start
        pieces += (masked[position:select], f" /*+ {_MARK}{number} */ ")
        position = max(select, *(comment.end - start for comment in block.comments), 0)
    return "".join((*pieces, masked[position:]))


def _find_unknown_tables(block: Block, scope: Scope, find_table: FindTable) -> Iterator[Complaint]:
    for hint in block.hints:
        for argument in grammar.get_tables(hint):
            source = _sources(scope).get(argument.parts[-1])
            if not isinstance(source, exp.Table) or find_table(source) is not False:
                continue
            name = ".".join(part.name for part in source.parts)
            if FILLER not in name:
                message = f"{hint.name} names {argument.text}, but the schema has no table {name}"
                yield complain("APH314", argument, message)


def _shuffles(scope: Scope, find_table: FindTable) -> bool:
    """Tell whether a block, or a block inside of it, can have a shuffle."""
    select = scope.expression
    # `(SELECT ...) ORDER BY ...` orders the block.
    nodes = [node for node in (select, select.parent) if node is not None]
    if any(node.args.get(clause) for node in nodes for clause in _SHUFFLING):
        return True
    conditions = [select.args.get(clause) for clause in ("where", "having", "qualify")]
    if any(each.find(exp.Select) for each in (*select.expressions, *conditions) if each):
        return True
    if any(True for _ in select.find_all(*_SHUFFLING_NODES)):
        return True
    if not isinstance(select.parent, exp.Subquery | exp.CTE | None):
        return True  # a branch of a set operation, or a condition
    return any(
        _shuffles(source, find_table)
        if isinstance(source, Scope)
        else not (isinstance(source, exp.Table) and find_table(source))
        for source in _sources(scope).values()
    )


def _sources(scope: Scope) -> dict[str, exp.Expr | Scope]:
    try:
        return {name.lower(): source for name, (_, source) in scope.selected_sources.items()}
    except OptimizeError:  # two sources with one name
        return {}


def _report_without_shuffle(block: Block) -> Iterator[Complaint]:
    for hint in grammar.select_used(block.hints).values():
        if hint.name in _OF_SHUFFLES:
            message = (
                f"{hint.text} has no effect, because its block has no join, aggregate, window, "
                "DISTINCT, ORDER BY or set operation"
            )
            yield complain("APH315", hint, message)

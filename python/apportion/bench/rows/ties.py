"""Order of a result without ties."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apportion.sql.parsing import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OTHER_ORDERS = ("sort", "cluster", "distribute")
_WITHOUT_ORDER = r"\b(map<|variant|interval$)"


def without_ties(spark: SparkSession, query: str) -> str:
    """Append all result columns to the ORDER BY of a query with a final LIMIT.

    With ties, Spark may return any of the tied rows. The added columns leave only equal rows tied.
    The query is returned unchanged in these cases: it has no final LIMIT; sqlglot cannot parse it;
    Spark cannot parse it with the columns behind its last clause, such as that of a pipeline;
    it has another kind of order, such as SORT BY or ORDER BY ALL; a column cannot be ordered.
    Raises Spark's errors.
    """
    from pyspark.errors import ParseException

    limit = re.search(r"\bLIMIT\s+\d+\s*$", query, re.IGNORECASE)
    if limit is None:
        return query
    tree = parse(query)
    if tree is None:
        return query
    clauses = tree.args
    order = clauses.get("order")
    if any(map(clauses.get, _OTHER_ORDERS)) or (
        order and order.expressions[0].name.upper() == "ALL"
    ):
        return query
    fields = spark.sql(query).schema
    if any(re.search(_WITHOUT_ORDER, field.dataType.simpleString()) for field in fields):
        return query
    columns = ", ".join(str(place + 1) for place in range(len(fields)))
    ordered = f"{query[: limit.start()]}{',' if order else 'ORDER BY'} {columns} {limit.group()}"
    try:
        spark.sql(ordered)
    except ParseException:  # such as of a pipeline, or of a WINDOW behind the ORDER BY
        return query
    return ordered

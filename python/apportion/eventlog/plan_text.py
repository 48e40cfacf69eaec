"""Facts that Spark's events have only inside of the text of an operator, as EXPLAIN prints it.

Spark writes a name and a text for each operator of a physical plan, and no fields for its columns.
No other module looks into these texts.
"""

from __future__ import annotations

import re

_COLUMN_ID = re.compile(r"#(\d+)")
_NUMBER = re.compile(r"\d+")
_FIRST_LIST = re.compile(r"\[([^\]]*)\]")
# Spark lists spark.sql.debug.maxToStringFields columns: `[a#1, b#2, ... 40 more fields]`.
_MORE = re.compile(r"(\d+) more fields")


def kind(name: str) -> str:
    """Return the name without an argument: `SortMergeJoin` of `SortMergeJoin(skew=true)`."""
    return name.partition("(")[0].strip()


def codegen(name: str) -> int | None:
    """Return the number of generated code: 3 of `WholeStageCodegen (3)`."""
    return int(match[0]) if (match := _NUMBER.search(name)) else None


def query_stage(text: str) -> int | None:
    """Return the number of a query stage: 3 of `ShuffleQueryStage 3`."""
    label = text.rpartition(" ")[2]
    return int(label) if label.isdecimal() else None


def column_ids(text: str) -> set[int]:
    """Return the ids of the columns that an operator names: 1 and 2 of `Project [a#1, b#2]`."""
    return {int(found) for found in _COLUMN_ID.findall(text)}


def width(text: str) -> int:
    """Return the number of columns in the first list of an operator."""
    listed = match[1] if (match := _FIRST_LIST.search(text)) else ""
    more = int(match[1]) if (match := _MORE.search(listed)) else 0
    return len(listed.split(", ")) + more

"""Rows and decisions as text: the same on every machine, and unambiguous."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

if TYPE_CHECKING:
    from apportion.decision import Decision


def row_lines(
    rows: Iterable[Sequence[Any]], schema: StructType, *, ordered: bool, digits: int | None
) -> list[str]:
    """Return one line per row, with ` | ` between cells. Unless `ordered`, the lines are sorted.

    A row without columns is `()`, because golden files may have blank lines anywhere.
    """
    types = [column.dataType for column in schema.fields]
    cells = ([cell(*pair, digits) for pair in zip(row, types, strict=True)] for row in rows)
    lines = [printable(" | ".join(row)) if row else "()" for row in cells]
    return lines if ordered else sorted(lines)


def cell(value: Any, kind: DataType, digits: int | None = None) -> str:
    """Return a value in the style of an SQL literal.

    Strings are quoted, NULL is not, and timestamps are in UTC with a `Z`. `digits` rounds
    floating-point values to that many significant digits. None keeps the shortest text that reads
    back as the same value.
    """
    if value is None:
        return "NULL"
    match kind:
        case StringType():
            return _quoted(value)
        case BooleanType():
            return "true" if value else "false"
        case FloatType() | DoubleType():
            return _floating(value, isinstance(kind, FloatType), digits)
        case DecimalType():
            return format(value, "f")
        case TimestampType():
            # PySpark returns local time of this process, regardless of the session's time zone.
            return f"{_instant(value.astimezone(timezone.utc))}Z"
        case TimestampNTZType():
            return _instant(value)
        case BinaryType():
            return f"X'{bytes(value).hex().upper()}'"
        case ArrayType():
            return f"[{', '.join(cell(item, kind.elementType, digits) for item in value)}]"
        case MapType():
            entries = (
                f"{cell(key, kind.keyType, digits)}: {cell(item, kind.valueType, digits)}"
                for key, item in value.items()
            )
            return f"{{{', '.join(sorted(entries))}}}"
        case StructType():
            members = (
                f"{column.name}: {cell(item, column.dataType, digits)}"
                for column, item in zip(kind.fields, value, strict=True)
            )
            return f"({', '.join(members)})"
        case _:
            return str(value)


def decision_lines(decisions: Iterable[Decision]) -> list[str]:
    """Return one line per decision, without values that change between runs (ids, bytes, times).

    The lines are sorted, because AQE plans independent stages in no fixed order.
    """
    return sorted(
        f"{decision.operator}:{_subpartitions(decision)} P={decision.parallelism} "
        f"tasks={decision.tasks} {f'{decision.layout} {widths(decision.ranges)}'.strip()} "
        f"({decision.kind})"
        for decision in decisions
    )


def _subpartitions(decision: Decision) -> str:
    return f" N={decision.subpartitions}" if decision.subpartitions else ""


def widths(ranges: Sequence[tuple[int, int]]) -> str:
    """Return a summary of ranges (start, end exclusive) as runs of equal widths.

    `8x2` means 8 tasks with 2 subpartitions each; `2+3x1` means one task with 2 and three with 1.
    Ranges that are not adjacent (next to a split subpartition) are listed: `0-3 4-8`.
    """
    if any(end != start for (_, end), (start, _) in pairwise(ranges)):
        return " ".join(f"{start}-{end}" for start, end in ranges)
    runs = [(width, len(list(run))) for width, run in groupby(e - s for s, e in ranges)]
    if len(runs) == 1:
        return "{1}x{0}".format(*runs[0])
    return "+".join(str(width) if count == 1 else f"{count}x{width}" for width, count in runs)


def printable(text: str) -> str:
    """Escape line breaks and other characters that an editor would not show."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _floating(value: float, single: bool, digits: int | None) -> str:
    if digits is not None:
        return repr(float(f"{value:.{digits}g}"))
    if single and math.isfinite(value):
        # Find the shortest text that reads back as the same 32 bits. repr does this for 64 bits.
        bits = struct.pack("f", value)
        shortest = (float(f"{value:.{digits}g}") for digits in range(1, 10))
        return repr(next(text for text in shortest if struct.pack("f", text) == bits))
    return repr(value)


def _instant(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat(sep=" ")

"""Quoting of SQL identifiers."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return the name of a table or column as a quoted SQL identifier."""
    return "`{}`".format(name.replace("`", "``"))

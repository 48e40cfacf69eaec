"""Names as SQL has them."""

from __future__ import annotations


def quoted(name: str) -> str:
    """Return the name of a table or column as SQL has it, whatever is in it."""
    return "`{}`".format(name.replace("`", "``"))

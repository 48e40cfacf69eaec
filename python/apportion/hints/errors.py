"""What rewriting a hint raises."""

from __future__ import annotations

from apportion.errors import ApportionError


class HintError(ApportionError, ValueError):
    """A hint, a block path or a text that cannot be rewritten: says which, where, and what is."""

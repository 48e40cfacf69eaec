"""The error that rewriting hints raises."""

from __future__ import annotations

from apportion.errors import ApportionError


class HintError(ApportionError, ValueError):
    """A wrong hint, an unknown block path, or a text without readable blocks."""

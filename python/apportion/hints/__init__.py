"""Hints in SQL text: `lint` finds wrong hints, `add`, `replace` and `strip` rewrite, `show` lists.

A hint is a comment directly after SELECT, such as `SELECT /*+ PARALLELISM(8) */ ...`. The module
`grammar` defines all hints. A hint covers its query block and each block inside it that does not
have the same hint. The module `apportion.sql.blocks` defines blocks and their paths.
"""

from apportion.hints.findings import CODES, Finding
from apportion.hints.lint import lint
from apportion.hints.reading import HintError
from apportion.hints.rewrite import add, replace, strip
from apportion.hints.show import BlockHints, EffectiveHint, show

__all__ = [
    "CODES",
    "BlockHints",
    "EffectiveHint",
    "Finding",
    "HintError",
    "add",
    "lint",
    "replace",
    "show",
    "strip",
]

"""Hints in SQL text: `lint` finds wrong ones, `add`, `replace` and `strip` rewrite, `show` tells.

Hints are comments directly after SELECT, `SELECT /*+ PARALLELISM(8) */ ...`; `grammar` lists them.
A hint covers its query block and the blocks in it that have none of their own; `blocks` says what
a block is and how its path is written.
"""

from apportion.hints.errors import HintError
from apportion.hints.findings import CODES, Finding
from apportion.hints.lint import lint
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

"""Adds, replaces and removes Apportion's hints, and changes no other character of the text.

`add` appends a hint to the block's hint comment. If the block has no hint comment that Spark can
parse, `add` inserts a space and a new comment after SELECT. `strip` reverses `add` exactly: for
every text without Apportion's hints, `strip(add(sql, hint))` is `sql`. One exception is a SELECT
before a template such as `{{- x }}`, which removes the space after it: there `strip` leaves `/**/`.

A change to a text with Jinja templates changes only hints in the rendered text. A hint that depends
on a template, as in `/*+ {% if x %} PARALLELISM(8) {% endif %} */`, cannot be replaced.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from apportion.errors import did_you_mean
from apportion.hints import grammar
from apportion.hints.expressions import Sql, edit
from apportion.hints.findings import sentence
from apportion.hints.reading import HintError, read_or_raise
from apportion.sql.blocks import Block, Text, read
from apportion.sql.hint_comments import Hint, HintComment
from apportion.sql.templates import has_template

# A template that follows, also behind comments. A template that removes the white space around it.
_NEXT_TEMPLATE = re.compile(r"(?:\s|/\*(?:[^*]|\*(?!/))*\*/|--[^\r\n]*)*(?:\{[{%#]|\$\{)")
_TRIMMING = re.compile(r"\{[{%#]-|-[%#}]\}")
_CLOSED_TAGS = {"if", "elif", "else", "endif", "for", "endfor"}
_LONGEST_GAP = 10_000  # the characters behind a comment that are searched for such templates
_EXPECTED = "Expected a hint such as PARALLELISM(8)"


class _Edit(NamedTuple):
    """The replacement of `sql[start:end]` by `text`."""

    start: int
    end: int
    text: str


def add(sql: Sql, hint: str, block: str | None = None) -> Sql:
    """Return a text or expression with a hint, such as `"PARALLELISM(8)"`, added to a block.

    `block` is a path from `show`. If it is None, every outermost block of every statement gets the
    hint: the only SELECT of a plain query, or each branch of a set operation.

    Raises `HintError` if the hint is wrong, the block is unknown or already has this hint, or the
    text cannot be read.
    """
    return edit(sql, lambda text: _write(text, hint, block, replace=False))


def replace(sql: Sql, hint: str, block: str | None = None) -> Sql:
    """Return a text or expression with a new value for a hint of a block.

    If the block does not have the hint, this does the same as `add`. If the block has the hint more
    than once, the new hint replaces the first one, and the others are removed. Two
    SOURCE_PARALLELISM hints are the same hint if they name the same table.

    Raises `HintError` if the hint is wrong, the block is unknown, or the text cannot be read.
    """
    return edit(sql, lambda text: _write(text, hint, block, replace=True))


def strip(sql: Sql, block: str | None = None) -> Sql:
    """Return a text or expression without Apportion's hints in one block, or in all blocks.

    Hints of Spark and of other extensions stay. Hints in places where Spark allows none stay too;
    the linter finds them. An empty hint comment is removed with the space before it, or with its
    whole line if the line has no other text.

    Raises `HintError` if the block is unknown or the text cannot be read.
    """
    return edit(sql, lambda text: _strip(text, block))


def _strip(sql: str, path: str | None) -> str:
    text = read_or_raise(sql)
    edits: list[_Edit] = []
    for block in text.blocks if path is None else [_find_block(text, path)]:
        for comment in block.comments:
            hints = [hint for hint in comment.hints if hint.name in grammar.APPORTION]
            edits += _remove(text, comment, hints)
    return _splice(sql, edits)


def _write(sql: str, hint: str, path: str | None, *, replace: bool) -> str:
    text = read_or_raise(sql)
    new = _parse_hint(hint)
    blocks = [block for block in text.blocks if block.is_outermost]
    if path is None and not blocks:
        raise HintError("the SQL has no outermost SELECT, and only a SELECT can have a hint")
    edits: list[_Edit] = []
    for block in blocks if path is None else [_find_block(text, path)]:
        if not block.takes_hints:
            place = text.describe(block.select.start)
            raise HintError(
                f"block {block.path!r} is a SELECT TRANSFORM ({place}); Spark allows no hints there"
            )
        same = [old for old in block.hints if grammar.get_key(old) == grammar.get_key(new)]
        if same and not replace:
            place = text.describe(same[0].start)
            raise HintError(
                f"block {block.path!r} already has {same[0].text} ({place}); call replace to "
                f"change it to {new.text}"
            )
        edits += _replace(text, block, same, new) if same else [_insert(text, block, new)]
    return _splice(sql, edits)


def _parse_hint(hint: str) -> Hint:
    """Return a hint of Apportion, or raise `HintError` with the linter's message about it."""
    text = read(f"SELECT /*+ {hint.strip()}\n*/ 1")
    if text.problem is not None or len(text.blocks) != 1 or not text.blocks[0].comments:
        raise HintError(f"not a hint: {hint!r}. {_EXPECTED}")
    comment = text.blocks[0].comments[0]
    if comment.stray is not None or len(comment.hints) != 1 or len(text.blocks[0].comments) > 1:
        raise HintError(f"not a single hint: {hint!r}. {_EXPECTED}")
    parsed = comment.hints[0]
    for complaint in grammar.check(parsed):
        raise HintError(sentence(complaint))
    if parsed.name not in grammar.APPORTION:
        raise HintError(
            f"{parsed.name} is a Spark hint; only Apportion's hints can be added: "
            f"{', '.join(grammar.APPORTION)}"
        )
    return parsed


def _find_block(text: Text, path: str) -> Block:
    paths = {block.path: block for block in text.blocks}
    if path not in paths:
        known = f"Known blocks: {', '.join(paths)}" if paths else "The SQL has no SELECT"
        raise HintError(f"unknown block {path!r}.{did_you_mean(path, paths)} {known}")
    return paths[path]


def _insert(text: Text, block: Block, hint: Hint) -> _Edit:
    end = block.select.end
    for comment in block.comments:
        # A template between SELECT and the comment can leave the comment out.
        if has_template(text.sql[block.select.end : comment.start]):
            break
        if comment.stray is None and not comment.is_open:
            end = comment.hints[-1].end
            return _Edit(end, end, f", {hint.text}")
    return _Edit(end, end, f" /*+ {hint.text} */")


def _replace(text: Text, block: Block, same: list[Hint], new: Hint) -> Iterator[_Edit]:
    for comment in block.comments:
        hints = [hint for hint in same if hint in comment.hints]
        depends = comment.is_open and any("{%" in token.text for token in comment.inner)
        if hints and (depends or has_template(text.sql[block.select.end : comment.start])):
            _raise_dependent(text, hints[0], "replaced")
    yield _Edit(same[0].start, same[0].end, new.text)
    for comment in block.comments:
        yield from _remove(text, comment, [hint for hint in same[1:] if hint in comment.hints])


def _raise_dependent(text: Text, hint: Hint, change: str) -> NoReturn:
    place = text.describe(hint.start)
    raise HintError(
        f"{hint.text} cannot be {change}, because a template decides whether its hint comment has "
        f"other hints or none ({place}); edit the comment by hand"
    )


def _remove(text: Text, comment: HintComment, hints: list[Hint]) -> Iterator[_Edit]:
    if not hints:
        return
    sql = text.sql
    if len(hints) == len(comment.hints) and _is_closed(comment):
        yield _remove_comment(text, comment)
        return
    # Spark cannot parse a comment without hints, or with a comma at its end.
    if comment.is_open or len(hints) == len(comment.hints):
        _raise_dependent(text, hints[0], "removed")
    kept_before = False
    for index, hint in enumerate(comment.hints):
        if hint in hints:
            yield from _remove_one(sql, comment, index, kept_before=kept_before)
        else:
            kept_before = True


def _is_closed(comment: HintComment) -> bool:
    """Tell whether the tags of a comment end in it, and have no effect on the text behind it."""
    tags = Counter(
        tag for token in comment.inner for tag in re.findall(r"\{%[-+]?\s*(\w+)", token.text)
    )
    is_balanced = tags["if"] == tags["endif"] and tags["for"] == tags["endfor"]
    return is_balanced and tags.keys() <= _CLOSED_TAGS


def _remove_one(
    sql: str, comment: HintComment, index: int, *, kept_before: bool
) -> Iterator[_Edit]:
    """Remove a hint with the comma and the white space on one side of it. Comments stay."""
    hint, near = comment.hints[index], comment.hints[index - 1 if kept_before else index + 1]
    low, high = (near.end, hint.start) if kept_before else (hint.end, near.start)
    commas = (each.start for each in comment.inner if each.text == "," and low <= each.start < high)
    comma = next(commas, None)
    if comma is not None and kept_before:
        low = comma
    if sql[low:high].strip(", \t\r\n"):
        yield _Edit(hint.start, hint.end, "")
        yield from [] if comma is None else [_Edit(comma, comma + 1, "")]
    else:
        yield _Edit(min(low, hint.start), max(high, hint.end), "")


def _remove_comment(text: Text, comment: HintComment) -> _Edit:
    sql, start, end = text.sql, comment.start, comment.end
    line = re.compile(r"[ \t]*(?:\r\n|\r|\n)").match(sql, end)
    line_start = start
    while sql[line_start - 1] in " \t":
        line_start -= 1
    if line and sql[line_start - 1] in "\r\n":
        start, end = line_start, line.end()
    elif sql[start - 1] == " ":
        start -= 1
    # `SELECT /*+ PARALLELISM(8) */x` must not become `SELECTx`.
    if re.match(r"\w\w", sql[start - 1] + sql[end : end + 1]):
        return _Edit(start, end, " ")
    # A template with `{%-` removes the white space before it, so SELECT would touch its text.
    template = _NEXT_TEMPLATE.match(sql, end)
    is_glued = sql[end : end + 1] == "{" and sql[start - 1].isalpha()
    touches = template and (is_glued or _TRIMMING.search(sql, end, end + _LONGEST_GAP))
    is_safe = not touches or sql.endswith("*/", 0, start)
    return _Edit(start, end, "" if is_safe else "/**/")


def _splice(sql: str, edits: list[_Edit]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, text in sorted(edits):
        pieces += (sql[position:start], text)
        position = end
    return "".join((*pieces, sql[position:]))

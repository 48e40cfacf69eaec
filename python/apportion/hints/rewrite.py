"""Adds, replaces and removes Apportion's hints by splicing text; every other character stays.

A hint goes to the end of the block's hint comment. A block without one that Spark can parse gets a
new one, behind SELECT and a space. What `add` puts in, `strip` takes out exactly: for every text
without hints of Apportion's, `strip(add(sql, hint))` is `sql`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from apportion.errors import did_you_mean
from apportion.hints import grammar
from apportion.hints.errors import HintError
from apportion.sql.blocks import Block, Text, read
from apportion.sql.hint_comments import Hint, HintComment
from apportion.sql.positions import Positions


class _Edit(NamedTuple):
    """Put `text` in the place of `sql[start:end]`."""

    start: int
    end: int
    text: str


def add(sql: str, hint: str, block: str | None = None) -> str:
    """Return the text with a hint of Apportion's, such as `"PARALLELISM(8)"`, added to a block.

    `block` is a path as `show` gives it. Without it the hint goes to every outermost block: the one
    SELECT of a plain query, each branch of a set operation, and that in each statement.

    Raises `HintError` when the hint is wrong, the block is unknown or already has this hint, or
    the text cannot be read.
    """
    return _write(sql, hint, block, replace=False)


def replace(sql: str, hint: str, block: str | None = None) -> str:
    """Return the text with a hint in the place of the same hint of a block.

    As `add`, which this is where the block does not have the hint. Where the block has it more than
    once, the first is replaced and the others go. SOURCE_PARALLELISM is the same hint when it names
    the same table.
    """
    return _write(sql, hint, block, replace=True)


def strip(sql: str, block: str | None = None) -> str:
    """Return the text without Apportion's hints, those of one block or of all.

    Hints of Spark's and of other extensions stay, and so do hints in places where Spark reads none,
    which the linter finds. A hint comment that would be empty goes, with the space before it, or
    with its line when it has one for itself.

    Raises `HintError` when the block is unknown or the text cannot be read.
    """
    text = _readable(sql)
    blocks = text.blocks if block is None else [_find(text, block)]
    return _splice(
        sql,
        [
            edit
            for found in blocks
            for comment in found.comments
            for edit in _remove(sql, comment, _ours(comment))
        ],
    )


def _write(sql: str, hint: str, path: str | None, *, replace: bool) -> str:
    text = _readable(sql)
    new = _checked(hint)
    edits: list[_Edit] = []
    for block in _outermost(text) if path is None else [_find(text, path)]:
        if not block.takes_hints:
            raise HintError(
                f"block {block.path!r} is a SELECT TRANSFORM ({_place(sql, block.select.start)}), "
                "which takes no hints in Spark"
            )
        same = [old for old in block.hints if grammar.key(old) == grammar.key(new)]
        if same and not replace:
            raise HintError(
                f"block {block.path!r} already has {same[0].text} ({_place(sql, same[0].start)}): "
                f"use replace to have {new.text} in its place"
            )
        edits += _replace(sql, block, same, new) if same else [_insert(block, new)]
    return _splice(sql, edits)


def _readable(sql: str) -> Text:
    text = read(sql)
    if text.problem is not None:
        place = _place(sql, text.problem.start)
        raise HintError(f"cannot find the query's blocks: {text.problem.message} ({place})")
    return text


def _checked(hint: str) -> Hint:
    """Return the hint read, or raise what the linter would say about it."""
    text = read(f"SELECT /*+ {hint.strip()}\n*/ 1")
    if text.problem is not None or len(text.blocks) != 1 or not text.blocks[0].comments:
        raise HintError(f"not a hint: {hint!r}. {_example()}")
    comment = text.blocks[0].comments[0]
    if comment.stray is not None or len(comment.hints) != 1 or len(text.blocks[0].comments) > 1:
        raise HintError(f"not one hint: {hint!r}. {_example()}")
    read_hint = comment.hints[0]
    for complaint in grammar.check(read_hint):
        suggestion = f" ({complaint.suggestion})" if complaint.suggestion else ""
        raise HintError(f"{complaint.message}{suggestion}")
    if read_hint.name not in grammar.APPORTION:
        raise HintError(
            f"{read_hint.name} is a hint of Spark's: only Apportion's can be added, which are "
            f"{', '.join(grammar.APPORTION)}"
        )
    return read_hint


def _example() -> str:
    return "A hint is written like PARALLELISM(8)"


def _outermost(text: Text) -> list[Block]:
    blocks = [block for statement in text.statements for block in statement.outermost]
    if not blocks:
        raise HintError("there is no SELECT that could have a hint")
    return blocks


def _find(text: Text, path: str) -> Block:
    paths = {block.path: block for block in text.blocks}
    if path not in paths:
        known = f"Known blocks: {', '.join(paths)}" if paths else "There is no SELECT at all"
        raise HintError(f"unknown block {path!r}.{did_you_mean(path, paths)} {known}")
    return paths[path]


def _place(sql: str, offset: int) -> str:
    return Positions(sql).describe(offset)


def _insert(block: Block, hint: Hint) -> _Edit:
    for comment in block.comments:
        if comment.stray is None:
            end = comment.hints[-1].end
            return _Edit(end, end, f", {hint.text}")
    return _Edit(block.select.end, block.select.end, f" /*+ {hint.text} */")


def _replace(sql: str, block: Block, same: list[Hint], new: Hint) -> Iterator[_Edit]:
    yield _Edit(same[0].start, same[0].end, new.text)
    for comment in block.comments:
        yield from _remove(sql, comment, [hint for hint in same[1:] if hint in comment.hints])


def _ours(comment: HintComment) -> list[Hint]:
    return [hint for hint in comment.hints if hint.name in grammar.APPORTION]


def _remove(sql: str, comment: HintComment, hints: list[Hint]) -> Iterator[_Edit]:
    if not hints:
        return
    if len(hints) == len(comment.hints):
        yield _remove_comment(sql, comment)
        return
    kept_before = False
    for index, hint in enumerate(comment.hints):
        if hint not in hints:
            kept_before = True
        elif kept_before:
            yield from _remove_after(sql, comment, index)
        else:
            yield from _remove_before(sql, comment, index)


def _remove_after(sql: str, comment: HintComment, index: int) -> Iterator[_Edit]:
    """Remove a hint with the comma and the white space before it; comments stay."""
    before, hint = comment.hints[index - 1], comment.hints[index]
    start = _comma(comment, before.end, hint.start)
    if start is None:
        start = before.end + len(sql[before.end : hint.start].rstrip())
    gap = sql[start : hint.start]
    if gap.strip(", \t\r\n"):
        yield _Edit(start, start + 1, "")
        start = hint.start
    yield _Edit(start, hint.end, "")


def _remove_before(sql: str, comment: HintComment, index: int) -> Iterator[_Edit]:
    """Remove a hint with the comma and the white space after it; comments stay."""
    hint, after = comment.hints[index], comment.hints[index + 1]
    comma = _comma(comment, hint.end, after.start)
    end = hint.end if comma is None else comma + 1
    if sql[hint.end : end].strip(", \t\r\n"):
        yield _Edit(hint.start, hint.end, "")
        yield _Edit(end - 1, end, "")
        return
    rest = sql[end : after.start]
    yield _Edit(hint.start, end + len(rest) - len(rest.lstrip()), "")


def _comma(comment: HintComment, start: int, end: int) -> int | None:
    commas = (t.start for t in comment.inner if t.text == "," and start <= t.start < end)
    return next(commas, None)


def _remove_comment(sql: str, comment: HintComment) -> _Edit:
    start, end = comment.start, comment.end
    line = re.compile(r"[ \t]*(?:\r\n|\r|\n)").match(sql, end)
    indent = len(sql[:start]) - len(sql[:start].rstrip(" \t"))
    if line and sql[start - indent - 1 : start - indent] in ("\n", "\r"):
        return _Edit(start - indent, line.end(), "")
    if sql[start - 1] == " ":
        start -= 1
    # `SELECT /*+ PARALLELISM(8) */x` must not become `SELECTx`.
    glued = re.match(r"\w\w", sql[start - 1] + sql[end : end + 1])
    return _Edit(start, end, " " if glued else "")


def _splice(sql: str, edits: list[_Edit]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end, text in sorted(edits):
        pieces += (sql[position:start], text)
        position = end
    return "".join((*pieces, sql[position:]))

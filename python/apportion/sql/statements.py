"""Splits SQL text into statements, for the programs that run them and for the linter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from apportion.errors import ApportionError
from apportion.sql.hint_comments import HintComment, fold_hint_comments
from apportion.sql.positions import Positions
from apportion.sql.tokens import Problem, Token, tokenize

_TITLE_LENGTH = 70
_QUERY_STARTS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")
_CHANGES = ("INSERT", "MERGE", "UPDATE", "DELETE")
# Keywords of scripts: these start statements, and these have a condition up to THEN or DO.
_OPENERS = ("BEGIN", "REPEAT", "LOOP")
_LABELED = [[word] for word in (*_OPENERS, "WHILE", "FOR")]
_CONDITIONS = ("IF", "ELSEIF", "CASE", "WHEN", "WHILE", "FOR")


class Statement(NamedTuple):
    """One statement as text.

    `is_query` is true if the statement only reads, so that it may run more than once. `line` and
    `column` are the place of the statement and its comments in the whole text, counted from 1.
    """

    text: str
    is_query: bool
    line: int = 1
    column: int = 1

    @property
    def title(self) -> str:
        """The first line, cut to 70 characters."""
        return self.text.splitlines()[0][:_TITLE_LENGTH]


class StatementTokens(NamedTuple):
    """The tokens of one statement without its semicolon.

    `sql[start:end]` is the statement with the comments around it. `parts` are the statements in a
    SQL script. Another statement is its own only part. `section` counts the bodies of Jinja macros,
    and is 0 in the rest of the text.
    """

    tokens: Sequence[Token]
    parts: Sequence[Sequence[Token]]
    section: int
    start: int
    end: int


class SplitText(NamedTuple):
    """The statements of a text. `tokens` and `comments` are those of the whole text."""

    tokens: list[Token]
    comments: dict[int, HintComment]
    statements: list[StatementTokens]
    problems: list[Problem]


def split(text: str) -> list[Statement]:
    """Return the statements of `text` unchanged, with their comments and without semicolons.

    A SQL script, `BEGIN ... END`, is one statement. Takes time linear in the length of the text.
    Raises `ApportionError` if a string, comment or template never ends, or if the text has no
    statement.
    """
    parts = split_tokens(text)
    positions = Positions(text)
    if parts.problems:
        start, _, _, message = min(parts.problems)
        number = 1 + sum(statement.tokens[-1].end <= start for statement in parts.statements)
        raise ApportionError(
            f"the SQL cannot be split into statements: {message} (statement {number}, "
            f"{positions.describe(start)})"
        )
    statements = []
    for statement in parts.statements:
        code = (token for token in statement.tokens if token.kind != "hint start")
        words = [token.word for token in code if token.effect == "value"]
        if words and statement.section == 0:
            sql = text[statement.start : statement.end]
            place = positions.line_column(statement.start + len(sql) - len(sql.lstrip()))
            statements.append(Statement(sql.strip(), _is_query(words), *place))
    if not statements:
        raise ApportionError("there is no SQL statement to run")
    return statements


def split_tokens(sql: str) -> SplitText:
    """Return the statements of a text as tokens. Each part that cannot be read is a problem.

    Every semicolon ends a statement, even in parentheses, unless it is in a script. A script
    without END reaches to the end.
    """
    tokens, problems = tokenize(sql)
    folded = fold_hint_comments(sql, tokens)
    statements: list[StatementTokens] = []
    for section, code in enumerate(_separate_sections(folded.code)):
        # The last semicolon ends the search for each semicolon.
        words = [*(token.word for token in code), ";"]
        low = 0
        while low < len(code):
            high, parts = _find_end(code, words, low)
            if any(token.effect == "value" for token in code[low:high]):
                start = code[low - 1].end if low else 0
                end = code[high].start if high < len(code) else len(sql)
                statements.append(StatementTokens(code[low:high], parts, section, start, end))
            low = high + 1
    statements.sort(key=lambda statement: statement.tokens[0].start)
    return SplitText(tokens, folded.comments, statements, problems + folded.problems)


def _separate_sections(code: list[Token]) -> list[list[Token]]:
    """Return the tokens outside and inside the bodies of macros and of `{% set x %}`.

    The outside is the first section. A body is rendered elsewhere, so it is a section of its own.
    """
    sections: list[list[Token]] = [[]]
    around = [0]
    for token in code:
        if token.effect == "open":
            around.append(len(sections))
            sections.append([])
        elif token.effect == "close" and len(around) > 1:
            around.pop()
        else:
            sections[around[-1]].append(token)
    return sections


def _find_end(code: list[Token], words: list[str], low: int) -> tuple[int, list[list[Token]]]:
    """Return the index of the semicolon of a statement or script, and its parts."""
    first = low
    while first < len(code) - 1 and code[first].kind == "template":
        first += 1
    begin = _skip_label(words, first)
    if words[begin] == "BEGIN":
        return _read_script(code, words, begin)
    high = words.index(";", low)
    return high, [code[low:high]]


def _read_script(code: list[Token], words: list[str], begin: int) -> tuple[int, list[list[Token]]]:
    """Return the end of a script and its parts, which include conditions such as `IF (SELECT 1)`.

    The grammar is `singleCompoundStatement` in Spark's SqlBaseParser.g4.
    """
    parts: list[list[Token]] = []
    opened = cases = 0  # blocks, and CASE expressions in a part
    start = index = begin
    while index < len(code):
        if index == start:
            start = index = _skip_label(words, start)
        word, head = words[index], words[start]
        has_ended = word == "END" and not cases and (index == start or head == "UNTIL")
        is_divided = word in ("THEN", "DO") and not cases and head in _CONDITIONS
        if (index == start and word in _OPENERS) or (word == "BEGIN" and head == "DECLARE"):
            opened += 1
            start = index + 1 + 2 * (words[index + 1 : index + 2] == ["NOT"])
        elif has_ended or is_divided or word == ";" or (index == start and word == "ELSE"):
            if index > start:
                parts.append(code[start:index])
            while has_ended and index < len(code) and words[index] != ";":
                index += 1
            opened -= has_ended
            cases, start = 0, index + 1
            if not opened:
                break
        elif index == start:
            opened += word in ("IF", "CASE", "WHILE", "FOR")
        elif words[index - 1] != ".":
            cases += (word == "CASE") - (word == "END" and cases > 0)
        index += 1
    if index == len(code) > start:
        parts.append(code[start:])
    return index, parts


def _skip_label(words: list[str], index: int) -> int:
    """Skip `name :` before a block."""
    has_label = words[index + 1 : index + 2] == [":"]
    return index + 2 * (has_label and words[index + 2 : index + 3] in _LABELED)


def _is_query(words: Sequence[str]) -> bool:
    """Return whether a statement only reads. In doubt, it does not.

    Spark's grammar allows a change after WITH, and INSERT after FROM, both outside parentheses. A
    column can have the name of a change, such as `SELECT update FROM t`.
    """
    if words[0] not in _QUERY_STARTS:
        return False
    depth = 0
    for index, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth or word not in _CHANGES:
            continue
        following = words[index + 1] if index + 1 < len(words) else ""
        is_clause = following in ("INTO", "OVERWRITE") and word in ("INSERT", "MERGE")
        after_tables = words[index - 1] == ")" and following != "("
        if is_clause or after_tables:
            return False
    return True

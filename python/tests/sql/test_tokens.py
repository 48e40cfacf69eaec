"""The tokens follow Spark's lexer where hints depend on it: strings, comments and templates."""

from __future__ import annotations

import pytest

from apportion.sql.tokens import tokenize

TOKENS = [
    # text, kinds and texts of its tokens
    ("SELECT a_1", "word SELECT|word a_1"),
    ("'a''b' x", "string 'a''b'|word x"),
    (r"'a\'b' x", r"string 'a\'b'|word x"),
    ('"a""b"', 'string "a""b"'),
    (r"r'a\' x", r"string r'a\'|word x"),
    ("R'a''b'", "string R'a'|string 'b'"),
    ("bar'x'", "word bar|string 'x'"),
    ("$$ it's $$ x", "string $$ it's $$|word x"),
    ("$t$ $$ ' $t$ x", "string $t$ $$ ' $t$|word x"),
    ("$1$", "symbol $|number 1|symbol $"),
    ("`a``b` c", "quoted `a``b`|word c"),
    ("-- it's\nx", "comment -- it's|word x"),
    ("-- a\\\nb\nc", "comment -- a\\\nb|word c"),
    ("-- a\r\nb", "comment -- a|word b"),
    ("/* a */ b", "comment /* a */|word b"),
    ("/* a /* b */ c */ d", "comment /* a /* b */ c */|word d"),
    ("/* a /*+ b */ c", "comment /* a /*+ b */|word c"),
    ("/*/ a */ b", "comment /*/ a */|word b"),
    ("/**/x", "comment /**/|word x"),
    ("/*+ a */", "hint start /*+|word a|hint end */"),
    ("/*+ '*/' */", "hint start /*+|string '*/'|hint end */"),
    ("/* + a */", "comment /* + a */"),
    # Characters that stand for hints and templates while sqlglot reads.
    ("a \ue001b \ue000", "word a|symbol \ue001|word b|template \ue000"),
    ("1.5e-3 .5 1;2", "number 1.5e-3|symbol .|number 5|number 1|symbol ;|number 2"),
    ("a.0xff 0X1+0 x", "word a|symbol .|word 0xff|word 0X1|symbol +|number 0|word x"),
    ("a.b 2b a{{ x }}.c", "word a|symbol .|word b|word 2b|word a{{ x }}|symbol .|word c"),
    (
        "{{ x }}_a {{ x }}{{ y }}{% z %}b",
        "word {{ x }}_a|template {{ x }}{{ y }}|template {% z %}|word b",
    ),
    ("a|>b||c", "word a|symbol |>|word b|symbol |||word c"),
    ("a\u00a0b\u3000c", "word a|word b|word c"),
    ("{{ it's }} x", "template {{ it's }}|word x"),
    ("{% if ( %}{# ' #}", "template {% if ( %}|template {# ' #}"),
    ("${a b}.t", "template ${a b}|symbol .|word t"),
    ("'{{ ' x", "string '{{ '|word x"),
]


@pytest.mark.parametrize(("sql", "expected"), TOKENS)
def test_tokens(sql: str, expected: str) -> None:
    tokens, problems = tokenize(sql)
    assert "|".join(f"{token.kind} {token.text}" for token in tokens) == expected
    assert problems == []
    assert all(sql[token.start : token.end] == token.text for token in tokens)


@pytest.mark.parametrize(
    ("sql", "start", "noun"),
    [
        ("a 'b", 2, "string opened by '"),
        ('a "b', 2, 'string opened by "'),
        ("a `b", 2, "quoted name opened by `"),
        ("a /* b /* c */", 2, "comment opened by /*"),
        ("a $$ b $", 2, "string opened by $$"),
        ("a {{ b }", 2, "template opened by {{"),
        ("a {% b", 2, "template opened by {%"),
        ("a ${b", 2, "template opened by ${"),
    ],
)
def test_an_unclosed_token_is_named(sql: str, start: int, noun: str) -> None:
    tokens, (problem,) = tokenize(sql)
    assert [(token.kind, token.text) for token in tokens] == [
        ("word", "a"),
        ("unreadable", sql[start:]),
    ]
    assert (problem.start, problem.message) == (start, f"the {noun} is never closed")


def test_statements_between_dollars_are_no_reason_for_a_later_error() -> None:
    sql = "CREATE FUNCTION f() AS $$ SELECT 1;\n$$; SELECT 'a"
    tokens, (problem,) = tokenize(sql)
    assert problem.message == "the string opened by ' is never closed"
    assert sql[problem.start :] == "'a"
    assert "$$ SELECT 1;\n$$" in [token.text for token in tokens]

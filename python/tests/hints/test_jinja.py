"""Hints in dbt models: the linter reads Jinja, and a rewritten model renders to the same SQL."""

from __future__ import annotations

import itertools
import re
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.hints import HintError, add, lint, replace, strip
from apportion.sql.tokens import tokenize

# text; for each finding, its code and its part of the text
FINDINGS = [
    # Models without wrong hints.
    ("{{ config(materialized='table', meta={'a': {'b': 1}}) }}\nselect 1 as x", []),
    ("{{ config(tags=['}}', ';']) }} SELECT /*+ BROADCAST(o) */ 1 FROM {{ ref('o') }} o, p", []),
    ("{% set q %}SELECT (1{% endset %}SELECT /*+ RANGES(even) */ 1", []),
    ("{% set days = [1, 2] %}{% do f() %}SELECT /*+ RANGES(even) */ 1", []),
    ("{% macro a() %}SELECT /*+ RANGES(even) */ 1{% endmacro %}"
     "{% macro b() %}SELECT /*+ RANGES(even) */ 2{% endmacro %}", []),
    ("{% if x %}WITH c AS (SELECT 1) SELECT /*+ RANGES(even) */ 1{% else %}"
     "WITH c AS (SELECT 1) SELECT /*+ MERGE(c) */ 2 FROM c, d{% endif %}", []),
    ("{% snapshot s %}SELECT /*+ RANGES(even) */ * FROM {{ this }}{% endsnapshot %}", []),
    ("SELECT {# why #} /*+ PARALLELISM(8) */ a FROM t", []),
    ("SELECT {% if x %}/*+ PARALLELISM(8) */{% else %}/*+ PARALLELISM(4) */{% endif %} a", []),
    ("SELECT {% if x %} a, {% else %} /*+ RANGES(even) */ {% endif %} b", []),
    ("SELECT {{ hint }} /*+ PARALLELISM(8) */ a FROM t", []),
    ("{% if a %}(SELECT 1{% else %}(SELECT /*+ RANGES(even) */ 2{% endif %})", []),
    ("SELECT /*+ {# eight #} PARALLELISM({# why #} 8) */ 1", []),
    ("SELECT /*+ {% if x %} RANGES(even), {% endif %} {{ hint }} */ 1", []),
    ("SELECT /*+ {% for h in hs %}{{ h }}{% if not loop.last %}, {% endif %}{% endfor %} */ 1", []),
    ("SELECT /*+ PAR{{ x }}(8), {{ x }}LELISM(8), BROADCAST(a_{{ e }}) */ 1 FROM a_b, c", []),
    ("SELECT /*+ DATA_VOLUME('{{ var('size') }}'), PARALLELISM({{ low }}, {{ high }}) */ 1", []),
    ("SELECT /*+ SOURCE_PARALLELISM({{ table_and_number }}) */ 1 FROM t", []),
    ("SELECT '{{ var('day') }};', `{{ x ~ '`' }}` -- {{ '\n' }} it's\n; SELECT 1", []),
    ("{% raw %}SELECT '{{', 1 /* {% */ {% endraw %}, {{ x }}", []),
    ("{{ '}}' }} SELECT /*+ RANGES(even) */ '{{ \"it's\" }}'", []),
    ("SELECT /*+ BROADCAST(t) */ * FROM {{ joined_tables() }}", []),
    ("SELECT /*+ BROADCAST(t) */ * FROM a {{ joins() }} WHERE b", []),
    ("SELECT /*+ BROADCAST(b) */ * FROM a {% if x %} JOIN b {% else %} c JOIN b {% endif %}", []),
    # Wrong hints.
    (
        "{{ config(x=1) }} SELECT /*+ BROADCAST(nope), SOURCE_PARALLELISM(no, 8) */ *"
        " FROM {{ ref('orders') }} o JOIN customers c",
        ["APH402 nope", "APH310 no"],
    ),
    ("{% if x %}SELECT /*+ RANGES(8) */ 1{% endif %}", ["APH308 8"]),
    ("SELECT /*+ {% if x %} PARALELISM(8) {% endif %} */ 1", ["APH201 PARALELISM"]),
    ("SELECT /*+ {# nothing #} */ 1", ["APH104 */"]),
    ("{% set q %}SELECT /*+ RANGES(8) */ 1{% endset %}SELECT 1", ["APH308 8"]),
    ("SELECT a {# why #} /*+ RANGES(even) */ FROM t", ["APH101 /*+ RANGES(even) */"]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "expected"), FINDINGS)
def test_findings_in_models(sql: str, expected: list[str]) -> None:
    findings = lint(sql)
    parts = [f"{f.code} {sql[f.offset : f.offset + f.length]}" for f in findings]
    assert sorted(parts) == sorted(expected)


# Each is rendered with x true and false, and a loop of two and of no names.
MODELS = [
    "SELECT {{ 'a' }} FROM t",
    "SELECT {{- ' a' }} FROM t",
    "SELECT {{- 'a' }} FROM t",
    "SELECT /* c */ {{- 'a' }} FROM t",
    "SELECT\n  {%- for n in names %}\n  {{ n }},\n  {%- endfor %}\n  b FROM t",
    "SELECT {%- if x %} a, {%- endif %} b FROM t",
    "SELECT {%- if x %} a, {% endif %}b FROM t",
    "SELECT {% if x -%} DISTINCT {% else -%} ALL {% endif -%} b FROM t",
    "SELECT {#- why -#} b FROM t",
    "SELECT {# PARALLELISM(1) #} b FROM t {# SELECT 2 #}",
    "{% if x %}SELECT 1{% else %}SELECT 2{% endif %} UNION ALL SELECT 3",
    "{% if x %}WITH c AS (SELECT 1) SELECT 1{% else %}WITH c AS (SELECT 2) SELECT 2{% endif %}",
    "{% if x %}SELECT 1{% else %}WITH c AS (SELECT 2) SELECT 2{% endif %}",
    "{% if x %}(SELECT 1) UNION (SELECT 2){% else %}WITH c AS (SELECT 2) SELECT 2{% endif %}",
    "{% if x %}(SELECT 1){% else %}WITH c AS (SELECT 2) SELECT 2{% endif %}",
    "{% set q %}SELECT 1{% endset %}SELECT * FROM ({{ q }}) s",
    "{% macro m(a) %}SELECT {{ a }}{% endmacro %}{{ m('b') }} UNION {{ m('c') }}",
    "{% raw %}SELECT '{{', '{%' FROM t{% endraw %}",
    "SELECT '{{ 'it' }}', \"{{ \"is\" }}\" FROM `{{ 't' }}`",
    "SELECT {% if x %}/*+ MERGE(t) */{% endif %} a FROM t",
    "SELECT /*+ {% if x %} MERGE(t), {% endif %} REBALANCE */ a FROM t",
    "SELECT /*+ MERGE(t) {#- c -#} */ a FROM t",
    "SELECT /*+ {% if x %}MERGE{% else %}BROADCAST{% endif %}(t) */ a FROM t",
    "SELECT /*+ {{ 'MERGE(t)' }} */ a FROM t",
    "SELECT /*+ BROADCAST({{ 't' }}) */ a FROM t",
]


def _contexts() -> list[dict[str, Any]]:
    values = itertools.product((True, False), (["n", "m"], []))
    return [{"x": x, "names": names} for x, names in values]


def _render(sql: str, context: dict[str, Any]) -> list[str]:
    """Return the tokens of the rendered text without comments and Apportion's hints."""
    # dbt's environment has Jinja's defaults.
    rendered = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(sql)
    tokens, problems = tokenize(strip(rendered.render(context)))
    assert problems == []
    return [token.text for token in tokens if token.kind != "comment"]


def _count(sql: str, context: dict[str, Any]) -> int:
    return jinja2.Environment().from_string(sql).render(context).count("PARALLELISM(8)")


@pytest.mark.parametrize("sql", MODELS)
def test_an_added_hint_changes_nothing_else_in_the_rendered_text(sql: str) -> None:
    hinted = add(sql, "PARALLELISM(8)")
    stripped = strip(hinted)
    for context in _contexts():
        expected = _render(sql, context)
        if "SELECT" in expected:  # else SELECT touches the next word and is no query
            assert _render(hinted, context) == expected
            assert _render(stripped, context) == expected
            assert _count(hinted, context) > 0
    assert stripped.replace("/**/", "") == sql


HINTED = [
    "SELECT /*+ PARALLELISM(8) */ {{- 'a' }} FROM t",
    "SELECT /*+ PARALLELISM(8) */ {%- if x -%} a {%- else -%} b {%- endif %} FROM t",
    "SELECT /*+ PARALLELISM(8) */ {%- if x %} b, {% endif %}a FROM t",
    "SELECT\n  /*+ PARALLELISM(8) */\n  {%- for n in names %} {{ n }}, {% endfor %}a FROM t",
    "SELECT {%- if x -%} /*+ PARALLELISM(8) */ {%- endif -%} a FROM t",
    "SELECT {% if x %}/*+ PARALLELISM(8) */{% else %}/*+ MERGE(t) */{% endif %} a FROM t",
    "SELECT /*+ {% if x %} PARALLELISM(8) {% else %} RANGES(even) {% endif %} */ a FROM t",
    "SELECT /*+ {# eight #} PARALLELISM(8) */ a FROM t",
    "SELECT /*+ MERGE(t), {# eight #} PARALLELISM(8) */ a FROM t",
    "SELECT /*+ PARALLELISM({{ 8 }}) */ a FROM t",
    "SELECT /*+ PARALLELISM({% if x %}8{% else %}4{% endif %}) */ a FROM t",
    "SELECT/*+ PARALLELISM(8) */{{ ' a' }} FROM t",
    "SELECT/*+ PARALLELISM(8) */{{ 'a' }} FROM t",
]


@pytest.mark.parametrize("sql", HINTED)
def test_a_removed_hint_changes_nothing_else_in_the_rendered_text(sql: str) -> None:
    stripped = strip(sql)
    assert "PARALLELISM" not in stripped
    for context in _contexts():
        assert _render(stripped, context) == _render(sql, context)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT /*+ {% if x %} MERGE(t), {% endif %} PARALLELISM(4) */ a",
        "SELECT /*+ {{ hint }} PARALLELISM(4) */ a",
        "SELECT /*+ MERGE(t), {{ hint }}, PARALLELISM(4) */ a",
        "SELECT /*+ {% set y = 1 %} PARALLELISM(4) */ {{ y }}",
        "SELECT /*+ {% include 'hints.sql' %} PARALLELISM(4) */ a",
    ],
)
def test_a_hint_that_leaves_an_open_comment_is_not_removed(sql: str) -> None:
    with pytest.raises(HintError, match=r"PARALLELISM\(4\) cannot be removed.*line 1, column"):
        strip(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {% if x %}/*+ PARALLELISM(4) */{% else %}/*+ PARALLELISM(2) */{% endif %} a",
        "SELECT /*+ {% if x %} PARALLELISM(4) {% endif %} */ a",
    ],
)
def test_a_hint_that_depends_on_a_template_is_not_replaced(sql: str) -> None:
    with pytest.raises(HintError, match=r"PARALLELISM\(4\) cannot be replaced.*line 1, column"):
        replace(sql, "PARALLELISM(8)")


def test_a_hint_with_a_template_as_its_value_is_replaced() -> None:
    assert replace("SELECT /*+ {# c #} PARALLELISM({{ n }}) */ 1", "PARALLELISM(8)") == (
        "SELECT /*+ {# c #} PARALLELISM(8) */ 1"
    )


# A trimming template after `--` or directly after SELECT would render to another statement.
_GAPS = st.sampled_from([" ", "\n", "\n\t", " {# c #} ", " /* c */ ", " {{ '' }} "])
_HINTS = st.sampled_from(
    [
        "",
        "",
        "/*+ MERGE(t) */ ",
        "/*+ {# c #} REBALANCE */ ",
        "/*+ {{ 'MERGE(t)' }} */ ",
        "/*+ MERGE({{ 't' }}), {% if x %}REBALANCE{% else %}COALESCE(2){% endif %} */ ",
        "{% if x %}/*+ MERGE(t) */{% endif %} ",
        "{% if x %}/*+ MERGE(t) */ {% else %}/*+ REBALANCE */ {% endif %}",
    ]
)
_ITEMS = st.sampled_from(
    [
        "a",
        "{{ 'a' }}",
        "{{- ' a' }}",
        "{{ 'a' -}} ",
        "'{{ 'it' }} */'",
        "`{{ 'b' }}`",
        "DISTINCT {% if x %} a {% else %} b {% endif %}",
        "{%- if x %} a, {%- endif %} b",
        "{% for n in names %}{{ n }}, {% endfor %}b",
        "\n{%- for n in names %}\n {{ n }},\n{%- endfor %}\n b",
        "{% raw %}'{{'{% endraw %}",
        "a{# SELECT #}, -- SELECT\n b",
    ]
)


def _select(source: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds("SELECT{}{}{} FROM {}".format, _GAPS, _HINTS, _ITEMS, source)


def _nested(query: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        _select(query.map("({}) s".format)),
        st.builds("({}) UNION ALL ({})".format, query, query),
        st.builds("WITH c AS ({}) {}".format, query, query),
        st.builds("{{% if x %}}{}{{% else %}}{}{{% endif %}}".format, query, query),
        st.builds("{{% set q %}}{}{{% endset %}}SELECT b FROM ({{{{ q }}}}) s".format, query),
        st.builds("{{% for n in names %}}({}) UNION {{% endfor %}}({})".format, query, query),
        st.builds("{{% macro m() %}}{}{{% endmacro %}}{{{{ m() }}}}".format, query),
    )


MODEL = st.recursive(
    _select(st.sampled_from(["t", "{{ 't' }}", "t JOIN {{- ' u' }}"])), _nested, max_leaves=4
)


# Run with --hypothesis-profile=many for 10,000 examples.
@settings(deadline=None)
@given(st.lists(MODEL, min_size=1, max_size=2).map(";\n".join))
def test_adding_and_removing_a_hint_commutes_with_rendering(sql: str) -> None:
    hinted = add(sql, "PARALLELISM(8)")
    stripped = strip(hinted)
    # Without the comment, the word after SELECT would touch it.
    assert stripped.replace("/**/", "") == sql
    assert stripped == sql or re.search(r"-[%#}]}|{[%#{]-", sql)
    for context in _contexts():
        expected = _render(sql, context)
        assert _render(hinted, context) == expected
        assert _render(stripped, context) == expected
        assert _count(hinted, context) > 0

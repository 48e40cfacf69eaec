"""Stages, the operators they were planned from, and the blocks of the text those come from."""

from __future__ import annotations

from apportion.decision import decision_from_json
from apportion.logs.eventlog import Application, LoggedDecision, LoggedShuffle, Operator, Query
from apportion.logs.explanation.render import html, text
from apportion.logs.explanation.views.view import QueryView, view

from .plans import plan
from .test_html import Page
from .test_render import DECIDED

SQL = """WITH busy AS (SELECT k, count(*) AS n FROM numbers GROUP BY k)
SELECT n, count(*) FROM busy WHERE n > 1 GROUP BY n"""


def operator(depth: int, text: str, of: str) -> Operator:
    start = SQL.index(of)
    return Operator(depth, text.split()[0], text, start, start + len(of))


def example(sql: str | None = SQL) -> QueryView:
    query = Query(
        7,
        "an example",
        plan=plan(
            """
            HashAggregate: n#5
              ShuffleQueryStage: 1
                Exchange
                  HashAggregate: n#5
                    HashAggregate: k#2
                      ShuffleQueryStage: 0
                        Exchange
                          FileScan parquet: [k#2, other#9]
            """
        ),
        sql=sql,
        operators=[
            operator(0, "Aggregate [n#5]", "GROUP BY n"),
            Operator(1, "Filter", "Filter (n#5 > 1)"),
            operator(2, "Aggregate [k#2]", "GROUP BY k"),
            operator(3, "Relation [k#2,other#9] parquet", "numbers"),
        ],
    )
    record = {**DECIDED, "query": 7}
    for stage, operators in ((1, [0]), (0, [0, 1, 2])):
        decided = decision_from_json({**record, "stages": [stage]})
        query.decisions.append(
            LoggedDecision(decided, [LoggedShuffle([1, 2])], operators=operators)
        )
    return view(Application(), query)


def test_a_stage_has_its_operators_and_sql_blocks() -> None:
    scan, middle, result = example().stages
    assert scan.operators == [3], "known by its columns, as there is no decision"
    assert (middle.operators, result.operators) == ([0, 1, 2], [0])
    assert (scan.blocks, middle.blocks, result.blocks) == (
        ["cte busy"],
        ["main", "cte busy"],
        ["main"],
    )


def test_the_text_names_the_sql_blocks_of_a_stage() -> None:
    lines = text.render(example()).splitlines()
    assert "  from block main (line 2), cte busy (line 1)" in lines


def test_the_page_links_sql_blocks_operators_and_stages() -> None:
    page = html.render("one", [example()])
    links = Page(page).links
    assert {"#q7-block-0", "#q7-block-1", "#q7-operator-0", "#q7-operator-3"} <= set(links)
    assert '<span class="block" id="q7-block-0" title="cte busy">SELECT k, count(*)' in page
    plain = page[page.index("<pre>") : page.index("</pre>")]
    assert plain.count("<span") == plain.count("</span>") == 2


def test_unknown_origins_are_left_out() -> None:
    unknown = example(sql=None)
    assert [stage.blocks for stage in unknown.stages] == [[], [], []]
    assert "SQL" not in html.render("one", [unknown])
    broken = example(sql="SELECT ((")
    assert "SELECT ((" in html.render("one", [broken])


def test_invalid_places_of_operators_are_left_out() -> None:
    query = Query(7, "hostile", plan=plan("HashAggregate: n#5"), sql="<b>", operators=[])
    made = view(Application(), query)
    assert made.stages[0].operators == []
    assert "&lt;b&gt;" in html.render("one", [made])

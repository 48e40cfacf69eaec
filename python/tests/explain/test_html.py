from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from apportion.decision import decision_from_json
from apportion.errors import ApportionError
from apportion.logs.eventlog import (
    Application,
    LoggedDecision,
    LoggedShuffle,
    Operator,
    PlanNode,
    Query,
)
from apportion.logs.explanation.render import html, picture
from apportion.logs.explanation.render.plots import ranges_plot
from apportion.logs.explanation.views.view import view

from .plans import plan
from .test_render import DECIDED, PLAN

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)> \"'&"


class Page(HTMLParser):
    """The elements of a page that matter here; it fails on tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        assert not any(name.startswith("on") for name in values)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.links += [values["href"] or ""] if "href" in values else []
        if tag not in ("meta", "link", "img"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def page(*queries: Query) -> Page:
    views = [view(Application(), query) for query in queries]
    return Page(html.render("nightly", views, ["a line"]))


def decided(number: int, **changed: object) -> Query:
    query = Query(number, "SELECT 1", plan=plan(PLAN))
    logged = LoggedDecision(
        decision_from_json({**DECIDED, **changed}), [LoggedShuffle([1024, 0, 2048, 1024])]
    )
    query.decisions.append(logged)
    return query


def test_all_links_have_targets_and_ids_are_unique() -> None:
    made = page(decided(1), decided(2))
    assert len(made.ids) == len(set(made.ids)) == 6
    assert {link.removeprefix("#") for link in made.links} == set(made.ids)


def test_the_page_is_self_contained() -> None:
    made = page(decided(1))
    assert not {"link", "img", "iframe"} & set(made.tags)
    assert made.tags.count("script") == 1
    assert all(link.startswith("#") for link in made.links)


@pytest.mark.parametrize(
    "place", ["description", "failure", "operator", "reason", "node", "source"]
)
def test_hostile_names_are_escaped(place: str) -> None:
    query = decided(1)
    if place in ("operator", "reason"):
        query = decided(1, **{place: HOSTILE})
    elif place == "source":
        query = decided(1, sources={HOSTILE: HOSTILE})
    elif place == "node":
        query.plan = PlanNode(HOSTILE, HOSTILE, {}, [])
    else:
        setattr(query, place, HOSTILE)
    made = page(query)
    assert made.tags.count("script") == 1
    assert "img" not in made.tags
    drawn = ElementTree.fromstring(picture.render([view(Application(), query)]))
    tags = {element.tag.partition("}")[2] for element in drawn.iter()}
    assert tags <= {"svg", "metadata", "title", "style", "path", "rect", "text", "g"}


def test_a_picture_has_no_characters_that_xml_does_not_allow() -> None:
    query = decided(1)
    query.description = "a\0b\x1bc & <d>"
    drawn = ElementTree.fromstring(picture.render([view(Application(), query)]))
    assert "Query 1: a�b�c & <d>" in [
        text.text for text in drawn.iter() if text.tag.endswith("text")
    ]


def test_queries_without_stages_have_no_picture() -> None:
    with pytest.raises(ApportionError, match="no query has stages, so there is no graph to draw"):
        picture.render([])


def test_the_page_shows_the_formula_with_its_numbers() -> None:
    numbers = {
        "data_volume_per_task": 1000, "broadcast_cap": 500, "broadcast_bytes": 700, "raw": 9,
        "rounded": 8, "input_bytes": 4096, "clamps": ["reactive"], "parallelism": 8,
    }  # fmt: skip
    text = html.render("", [view(Application(), decided(1, **numbers))])
    rows = dict(re.findall(r'<tr><th scope="row">(.*?)</th><td>(.*?)</td></tr>', text))
    assert rows["B, broadcast"] == "min(700, 500, 1,000 - 1) = 500"
    assert rows["raw, bytes / (V - B)"] == "ceil(4,096 / (1,000 - 500)) = 9"
    assert (rows["rounded"], rows["P, tasks decided"]) == ("8", "8")
    assert rows["limits applied"] == "reactive"
    assert rows["parallelism set by"] == "hint on the query block, line 2"


def test_a_page_of_300_stages_is_rendered() -> None:
    text = "Scan"
    for number in range(300):
        text = f"HashAggregate\n  ShuffleQueryStage: {number}\n    Exchange\n" + "\n".join(
            f"      {line}" for line in text.splitlines()
        )
    made = page(Query(1, "SELECT", plan=plan(text)))
    assert made.tags.count("details") == 301


def test_the_bars_of_a_range_are_one_element_with_a_title() -> None:
    drawn = ranges_plot([1024, 0, 2048, 1024, 10], [(0, 3), (3, 4)], "sizes & ranges")
    assert re.findall(r'class="(\w+)".*?<title>(.*?)</title>', drawn) == [
        ("even", "shuffle partitions 0 to 2: 3 KiB, largest 2 KiB"),
        ("odd", "shuffle partition 3: 1 KiB"),
        ("none", "shuffle partition 4: 10 B"),
    ]
    assert 'aria-label="sizes &amp; ranges"' in drawn


@pytest.mark.parametrize("count", [0, 1, 400, 401, 100_000])
def test_a_plot_has_at_most_400_bars(count: int) -> None:
    drawn = ranges_plot([1] * count, [(0, count)], "")
    assert drawn.count("M") == min(count, 400) or 200 < drawn.count("M") < 400
    if count:
        assert f"shuffle partition{'s 0 to' if count > 1 else ''} {count - 1}: " in drawn


def test_the_page_of_a_deep_plan_is_small() -> None:
    deep = Query(
        1, "SELECT 1", operators=[Operator(depth, "Join", "Join") for depth in range(5000)]
    )
    made = html.render("nightly", [view(Application(), deep)])
    assert "\n" + "  " * 99 + "<span" in made
    assert len(made) < 5000 * 500

"""Rules in code and in files: the same problems as in Spark, and files that Spark reads."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.policies import Policies, PolicyError, Rule, check, expressions, load

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/policies.md"
# PolicyFileSuite reads the same file.
GOLDEN: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "jvm/src/test/resources/policies.golden.json").read_text("utf-8")
)


def file(folder: Path, text: str, name: str = "policies.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("case", GOLDEN["files"], ids=lambda case: case["file"][:80])
def test_a_file_has_the_same_problems_as_in_spark(tmp_path: Path, case: dict[str, Any]) -> None:
    path = file(tmp_path, case["file"])
    if "unreadable" in case:
        with pytest.raises(PolicyError, match=r"policies\.yaml: ") as error:
            check(path)
        assert all(name in str(error.value) for name in case["unreadable"])
        return
    found = check(path)
    assert [each.rule for each in found] == [each["rule"] for each in case["problems"]]
    for each, expected in zip(found, case["problems"], strict=True):
        assert each.is_certain
        assert str(each).startswith(f"{path}: rule {each.rule}")
        assert all(name in each.message for name in expected["names"]), each.message
    if not found:
        assert len(load(path).rules) == len(case["accepted"])


@pytest.mark.parametrize("case", GOLDEN["expressions"], ids=lambda case: case["sql"])
def test_an_expression_is_judged_as_by_java(case: dict[str, Any]) -> None:
    if case["certain"] and not case["accepted"]:
        with pytest.raises(ValueError, match=r".+ (at \d+|closed)$"):
            expressions.check(case["sql"])
    else:
        assert expressions.check(case["sql"]) == case["certain"]


def test_an_expression_of_many_groups_is_left_to_java() -> None:
    assert expressions.check("(" * 200 + ")" * 200)
    assert not expressions.check("(" * 5000 + ")" * 5000)


def test_a_rule_that_only_spark_can_check_is_no_certain_problem(tmp_path: Path) -> None:
    path = file(tmp_path, r"rules: [{name: a, match: {sql: '\p{Lu}+'}, hints: RANGES(even)}]")
    (found,) = check(path)
    assert (found.rule, found.name, found.is_certain) == (1, "a", False)
    assert str(found) == (
        rf"{path}: rule 1 (a): sql is '\p{{Lu}}+'. Only Spark can check this regular expression"
    )
    assert len(load(path).rules) == 1


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none\.yaml: No such file or directory"):
        load(tmp_path / "none.yaml")


ALIASES = "a: &a [x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.yaml", "[" * 3000, "it is nested too deeply"),
        ("a.yaml", "rules: " + "[" * 3000 + "]" * 3000, "it is nested too deeply"),
        ("a.json", "[" * 100_000, "it is nested too deeply"),
        ("a.json", '{"rules": ' + '{"a": ' * 100_000, "it is nested too deeply"),
        ("a.yaml", ALIASES + "rules: *i", "cannot use the alias *a"),
        ("a.yaml", "rules: &a [*a]", "cannot use the alias *a"),
        ("a.yaml", "rules: !!timestamp x", "cannot use the tag tag:yaml.org,2002:timestamp"),
        ("a.yaml", "? [a]\n: b", "a key must be text"),
        ("a.json", '{"rules": NaN}', "Out of range float"),
        ("a.yaml", "rules: [.inf]", "Out of range float"),
        ("a.json", r'{"rules": "\ud800"}', "surrogates not allowed"),
    ],
)
def test_a_hostile_file_is_an_error_in_bounded_time(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    start = time.process_time()
    with pytest.raises(PolicyError) as error:
        check(file(tmp_path, text, name))
    assert problem in str(error.value)
    assert len(str(error.value)) < 1000
    assert time.process_time() - start < 5


def test_a_value_that_only_a_message_finds_too_deep_is_a_problem(tmp_path: Path) -> None:
    def message(depth: int) -> str:
        text = '{"rules": [{"match": {"user": "a"}, "blocks": {"a": %s}}]}'
        try:
            return str(check(file(tmp_path, text % ("[" * depth + "]" * depth), "a.json"))[0])
        except PolicyError as error:
            return str(error)

    # Reading the file needs fewer calls than showing the value.
    for depth in range(800, 1000):
        assert re.search(r"block a is \[\[|nested too deeply", message(depth))


def test_a_file_that_spark_does_not_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as out:
        out.truncate((16 << 20) + 1)
    with pytest.raises(PolicyError, match=r"it has 16777217 bytes\. Allowed: at most 16777216"):
        check(path)


def test_a_long_value_is_cut_in_a_message(tmp_path: Path) -> None:
    long = "x" * 100_000
    rule = {
        "match": {long: "a", "user": [[long]], "sql": f"({long}"},
        "settings": {long: 1, "parallelism": long},
        "hints": long,
        "blocks": {f"{long}-": ""},
        long: 1,
    }
    found = check(file(tmp_path, json.dumps({"rules": [rule]}), "policies.json"))
    assert len(found) == 8
    assert all(len(each.message) < 500 for each in found)


def test_the_example_in_the_docs_limits_shuffles_and_scans(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    limits = load(file(tmp_path, text)).rules[1].settings
    assert limits["maxParallelism"] == limits["sources.maxParallelism"]


def test_an_error_in_code_has_all_problems() -> None:
    with pytest.raises(PolicyError) as error:
        Rule({"usr": "ann"}, settings={"paralelism": 0, "max_parallelism": 0}, hints="RANGES(odd)")
    assert len(error.value.problems) == 4
    assert str(error.value) == "\n".join(error.value.problems)


RULES = Policies(
    [
        Rule(
            {"user": ["ann", "bob"], "table": "sales.*", "sql": r"(?i)from\s+orders -- 'x'"},
            settings={"data_volume_per_task": "256MB", "maxParallelism": 64, "enabled": False},
            hints="PARALLELISM(4, 64), SOURCE_PARALLELISM(orders, 16)",
            blocks={"by_day": "RANGES(balanced)", "db.`a b`": "PARALLELISM(2)"},
            force=True,
            name="nächtlich: a",
            comment="Why the rule exists.\nA second line.",
        ),
        Rule({"user": "*"}, settings={"mode": "observe"}),
    ]
)


@pytest.mark.parametrize("name", ["policies.yaml", "policies.json"])
def test_a_file_has_the_rules_that_were_saved(tmp_path: Path, name: str) -> None:
    RULES.save(tmp_path / name)
    saved = load(tmp_path / name)
    assert [rule.as_data() for rule in saved.rules] == [rule.as_data() for rule in RULES.rules]
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_the_yaml_of_a_rule_begins_with_its_comment() -> None:
    assert RULES.to_yaml().splitlines()[:8] == [
        "rules:",
        "# Why the rule exists.",
        "# A second line.",
        "- name: 'nächtlich: a'",
        "  match:",
        "    user:",
        "    - ann",
        "    - bob",
    ]


NAMES = st.one_of(
    st.sampled_from(
        ["null", "true", "on", "~", "1.5e3", "08", "<<", "=", "a\x7fb", "\x85", "\ufffe"]
    ),
    st.from_regex(r"[-+.0-9eE_xo:]{1,8}", fullmatch=True),
    st.text(min_size=1),
)
TEXTS = NAMES.filter(str.strip)
BLOCKS = st.one_of(
    st.sampled_from(["null", "true", "False", "on", "a.b", "y"]),
    TEXTS.map(lambda text: "`{}`".format(text.replace("`", "``"))),
)


@settings(max_examples=100, deadline=None)
@given(
    user=st.one_of(TEXTS, st.lists(TEXTS, min_size=1, max_size=3)),
    name=st.one_of(st.none(), NAMES),
    blocks=st.dictionaries(BLOCKS, st.just("RANGES(even)"), min_size=1, max_size=3),
    comment=st.one_of(st.none(), NAMES),
    suffix=st.sampled_from(["yaml", "json"]),
)
def test_any_rule_that_is_saved_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    user: Any,
    name: str | None,
    blocks: dict[str, str],
    comment: str | None,
    suffix: str,
) -> None:
    path = tmp_path_factory.getbasetemp() / f"saved.{suffix}"
    rule = Rule({"user": user}, blocks=blocks, name=name, comment=comment)
    Policies([rule, rule]).save(path)
    assert [each.as_data() for each in load(path).rules] == [rule.as_data()] * 2


def test_no_rules_are_an_empty_list(tmp_path: Path) -> None:
    Policies().save(tmp_path / "empty.yaml")
    assert load(tmp_path / "empty.yaml") == Policies([])


def test_a_wrong_rule_in_code_is_an_error() -> None:
    with pytest.raises(PolicyError, match=r"parallelism is 0\. Allowed: 1 or more"):
        Rule({"user": "ann"}, settings={"parallelism": 0})
    with pytest.raises(PolicyError, match=r"unknown setting 5\."):
        Rule({"user": "ann"}, settings={5: 1})  # type: ignore[dict-item]

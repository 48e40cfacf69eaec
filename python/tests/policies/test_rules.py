"""Rules in code and in files: the same problems as in Spark, and files that Spark reads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apportion.policies import Policies, PolicyError, Rule, check, load

ANN = "rules: [{{match: {{user: ann}}, {}}}]"

WRONG_RULES = [
    ("settings: {paralelism: 8}", "unknown setting paralelism. Did you mean parallelism?"),
    ("settings: {max_parallelism: 8}", "unknown setting max_parallelism."),
    ("settings: {parallelism: many}", "parallelism is many. Allowed: 1 or more, or -1 (decide)"),
    ("settings: {parallelism: [8]}", "parallelism is [8]. Allowed: one value"),
    ("settings: {history.path: /x}", "a rule cannot set history.path: it is set when Spark starts"),
    ("settings: {hints.strict: true}", "a rule cannot set hints.strict: hints are checked before"),
    ("settings: {enabled: true}", "enabled is true. Allowed: false"),
    ("settings: {minParallelism: 64, maxParallelism: 8}", "min_parallelism is 64"),
    ("settings: {}", "settings must have names and values"),
    ("hints: PARALELISM(8)", "hints: unknown hint PARALELISM. Allowed: PARALLELISM, DATA_VOLUME"),
    ("hints: PARALLELISM(0)", "hints: hint PARALLELISM(0): PARALLELISM takes a number from 1 to"),
    ("hints: 'PARALLELISM(8) */ 1 --'", "cannot read the hints"),
    ("hints: 8", "hints is 8. Allowed: text, such as PARALLELISM(8)"),
    ("blocks: {c: RANGES(odd)}", "block c: hint RANGES(odd): RANGES takes even or balanced"),
    ("blocks: {a b: RANGES(even)}", "block a b is not a name"),
    ("settings: {mode: active}, force: 1", "force is 1. Allowed: true, false"),
    ("settings: {mode: active}, name: 7", "name must be text"),
    ("setings: {mode: active}", "unknown key setings. Did you mean settings?"),
    ("force: true", "it sets nothing. Add settings, hints or blocks"),
]
WRONG_CONDITIONS = [
    ("{}", "match has no conditions. Allowed: fingerprint, user, application"),
    ("{usr: ann}", "match has the unknown key usr. Did you mean user?"),
    ("{user: 7}", "user is 7. Allowed: text, or a list of texts"),
    ("{user: []}", "user is []. Allowed: text, or a list of texts"),
    ("{sql: '('}", "sql is '(', which is not a regular expression"),
    ("{sql: '(?P<n>a)'}", "sql is '(?P<n>a)', which is not a regular expression"),
    ("{sql: [a, b]}", "sql takes one regular expression"),
]
WRONG_FILES = [
    ("", "the file must have keys and values. Allowed keys: rules"),
    ("rules: 5", "the file needs a list of rules"),
    ("rule: []", "unknown key rule. Did you mean rules?"),
    ("rules: [", "line 1"),
    ("rules: []\nrules: []", "Duplicate field 'rules'"),
]


def file(folder: Path, text: str, name: str = "policies.yaml") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(("rule", "problem"), WRONG_RULES)
def test_a_wrong_rule_is_a_problem(tmp_path: Path, rule: str, problem: str) -> None:
    path = file(tmp_path, ANN.format(rule))
    (found,) = check(path)
    assert found.startswith(f"{path}: rule 1")
    assert problem in found


@pytest.mark.parametrize(("match", "problem"), WRONG_CONDITIONS)
def test_a_wrong_condition_is_a_problem(tmp_path: Path, match: str, problem: str) -> None:
    (found,) = check(file(tmp_path, f"rules: [{{match: {match}, hints: RANGES(even)}}]"))
    assert problem in found


@pytest.mark.parametrize(("text", "problem"), WRONG_FILES)
def test_a_wrong_file_is_an_error(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=r"policies\.yaml: ") as error:
        check(file(tmp_path, text))
    assert problem in str(error.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"none\.yaml: No such file or directory"):
        load(tmp_path / "none.yaml")


def test_java_expressions_that_python_does_not_know_are_accepted(tmp_path: Path) -> None:
    text = r"rules: [{match: {sql: '\p{Lu}+orders++'}, hints: RANGES(even)}]"
    assert check(file(tmp_path, text)) == []


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
        ("a.json", '{"rules": NaN}', "NaN is not a number"),
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


def test_a_file_that_spark_does_not_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as out:
        out.truncate((16 << 20) + 1)
    with pytest.raises(PolicyError, match=r"it has 16777217 bytes\. Allowed: at most 16777216"):
        check(path)


def test_scalars_mean_the_same_as_in_spark(tmp_path: Path) -> None:
    text = "rules: [{name: 2026-01-01, match: {user: on}, settings: {parallelism: 08}}]"
    (rule,) = load(file(tmp_path, text)).rules
    assert (rule.name, rule.match, rule.settings) == (
        "2026-01-01",
        {"user": "on"},
        {"parallelism": "08"},
    )


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

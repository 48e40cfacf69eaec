from __future__ import annotations

import pytest

from apportion import ApportionError
from apportion.bench.variants import BUILT_IN, Variant, choose, parse


def names(variants: list[Variant]) -> list[str]:
    return [variant.name for variant in variants]


def test_user_defined_variants_follow_the_built_in_ones() -> None:
    assert choose(None, []) == BUILT_IN
    assert names(choose(None, ["mine:parallelism=4"])) == [*names(BUILT_IN), "mine"]


def test_names_choose_variants_and_their_order() -> None:
    assert names(choose("even, spark", [])) == ["even", "spark"]
    assert names(choose("even,spark", ["mine:parallelism=4"])) == ["even", "spark", "mine"]
    assert names(choose("mine,spark", ["mine:parallelism=4"])) == ["mine", "spark"]


def test_a_variant_accepts_the_assignments_of_the_set_option() -> None:
    assert parse("small:data_volume_per_task=1MB,spark.sql.shuffle.partitions=64") == Variant(
        "small",
        {
            "spark.apportion.dataVolumePerTask": str(1 << 20),
            "spark.sql.shuffle.partitions": "64",
        },
    )


def test_a_value_of_a_variant_can_have_commas_and_colons() -> None:
    assert parse("rules:spark.a=x,y,spark.b=z:1").conf == {"spark.a": "x,y", "spark.b": "z:1"}


@pytest.mark.parametrize(
    ("chosen", "own", "message"),
    [
        ("spark,evn", [], "unknown variant 'evn'. Did you mean even.* Known .*: spark, spark-size"),
        ("even,even", [], "the variant even is chosen twice"),
        ("even", [], "even is the only variant: choose two or more"),
        (None, ["even:parallelism=4"], "a variant named even already exists"),
        (None, ["small"], "--variant small: write NAME:KEY=VALUE"),
        (None, [":parallelism=4"], "--variant :parallelism=4: write NAME:KEY=VALUE"),
        (None, ["small:paralelism=4"], "--variant small:.* Did you mean parallelism"),
        (None, ["small:parallelism=0"], "--variant small:.* parallelism is 0: allowed is 1"),
    ],
)
def test_invalid_variants_raise(chosen: str | None, own: list[str], message: str) -> None:
    with pytest.raises(ApportionError, match=message):
        choose(chosen, own)

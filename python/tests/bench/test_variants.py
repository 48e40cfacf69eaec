from __future__ import annotations

import pytest

from apportion import ApportionError
from apportion.bench.variants import BUILT_IN, Variant, choose, parse


def names(variants: list[Variant]) -> list[str]:
    return [variant.name for variant in variants]


def test_all_built_in_variants_and_own_ones_after_them() -> None:
    assert choose(None, []) == BUILT_IN
    assert names(choose(None, ["mine:parallelism=4"])) == [*names(BUILT_IN), "mine"]


def test_the_names_say_which_variants_in_which_order() -> None:
    assert names(choose("even, spark", [])) == ["even", "spark"]
    assert names(choose("even,spark", ["mine:parallelism=4"])) == ["even", "spark", "mine"]
    assert names(choose("mine,spark", ["mine:parallelism=4"])) == ["mine", "spark"]


def test_a_variant_sets_what_set_does() -> None:
    assert parse("small:data_volume_per_task=1MB,spark.sql.shuffle.partitions=64") == Variant(
        "small",
        {
            "spark.apportion.dataVolumePerTask": str(1 << 20),
            "spark.sql.shuffle.partitions": "64",
        },
    )


def test_a_value_may_have_commas_and_colons_in_it() -> None:
    assert parse("rules:spark.a=x,y,spark.b=z:1").conf == {"spark.a": "x,y", "spark.b": "z:1"}


@pytest.mark.parametrize(
    ("chosen", "own", "message"),
    [
        ("spark,evn", [], "unknown variant 'evn'. Did you mean even.* Known .*: spark, spark-size"),
        ("even,even", [], "the variant even is chosen twice"),
        ("even", [], "even is the only variant: choose two or more"),
        (None, ["even:parallelism=4"], "there is a variant even already"),
        (None, ["small"], "--variant small: write NAME:KEY=VALUE"),
        (None, [":parallelism=4"], "--variant :parallelism=4: write NAME:KEY=VALUE"),
        (None, ["small:paralelism=4"], "--variant small:.* Did you mean parallelism"),
        (None, ["small:parallelism=0"], "--variant small:.* parallelism is 0: allowed is 1"),
    ],
)
def test_variants_that_are_refused(chosen: str | None, own: list[str], message: str) -> None:
    with pytest.raises(ApportionError, match=message):
        choose(chosen, own)

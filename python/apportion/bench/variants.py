"""Variants of a benchmark: named sets of confs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable

from apportion.errors import ApportionError, SettingError, did_you_mean
from apportion.redaction import shown_value
from apportion.settings import ENABLED, parse_assignments, split_variant

_RANGES = "spark.apportion.ranges"


@dataclasses.dataclass(frozen=True)
class Variant:
    """Name and confs that are set while a query runs."""

    name: str
    conf: dict[str, str]

    def __str__(self) -> str:
        conf = self.without_secrets().conf.items()
        return f"{self.name} ({', '.join(f'{key}={value}' for key, value in conf)})"

    def without_secrets(self) -> Variant:
        """Return the variant as it is shown and saved."""
        conf = {key: shown_value(key, value) for key, value in self.conf.items()}
        return Variant(self.name, conf)


BUILT_IN = [
    Variant("spark", {ENABLED: "false"}),
    Variant(
        "spark-size",
        {ENABLED: "false", "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false"},
    ),
    Variant("even", {ENABLED: "true", _RANGES: "even"}),
    Variant("balanced", {ENABLED: "true", _RANGES: "balanced"}),
]


def choose(names: str | None, own: Iterable[str]) -> list[Variant]:
    """Return the variants of comma-separated `names`, and the user's `own` variants.

    If `names` is None, all built-in variants are returned. `own` has texts for `parse`. `names` can
    contain the names of own variants; the others come last. Raises `ApportionError` for a name that
    is unknown or used twice, and for fewer than two variants.
    """
    known = {variant.name: variant for variant in BUILT_IN}
    chosen = [name.strip() for name in names.split(",")] if names is not None else list(known)
    for variant in map(parse, own):
        if variant.name in known:
            raise ApportionError(
                f"a variant named {variant.name} already exists: choose another name"
            )
        known[variant.name] = variant
        if variant.name not in chosen:
            chosen.append(variant.name)
    for name in chosen:
        if name not in known:
            raise ApportionError(
                f"unknown variant {name!r}.{did_you_mean(name, known)} Known variants: "
                f"{', '.join(known)}. Add others with --variant NAME:KEY=VALUE,..."
            )
        if chosen.count(name) > 1:
            raise ApportionError(f"the variant {name} is chosen twice")
    if len(chosen) < 2:
        raise ApportionError(
            f"{chosen[0]} is the only variant: choose two or more. The first is the baseline"
        )
    return [known[name] for name in chosen]


def parse(text: str) -> Variant:
    """Return the variant in a text such as `small:data_volume_per_task=1MB,spark.some.key=2`.

    Raises `ApportionError` if the text does not have this form, or if a setting does not allow its
    value.
    """
    name, assignments = split_variant(text, "--variant")
    try:
        return Variant(name, parse_assignments(assignments))
    except SettingError as error:
        # The other assignments of the text can be secrets.
        raise SettingError(f"--variant {name}: {error}") from None


def memory_conf(memory: str, master: str | None) -> dict[str, str]:
    """Return the confs that give tasks this memory: the driver's in local mode, or executors'.

    Raises `ApportionError` for a text that is not a size.
    """
    if not re.fullmatch(r"[1-9]\d*[a-zA-Z]*", memory):
        raise ApportionError(f"--memory has {memory!r}: write sizes such as 4g,1g,700m")
    is_local = master is None or master.startswith("local[") or master == "local"
    return {"spark.driver.memory" if is_local else "spark.executor.memory": memory}

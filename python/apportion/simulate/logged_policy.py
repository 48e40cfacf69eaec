"""The policies of a scenario, for what a log says of a decision: what a query settles stays."""

from __future__ import annotations

import dataclasses
import re

from apportion.decision import Decision
from apportion.simulate.arithmetic.policy import Confs, Policy

_ESTIMATE = re.compile(r" of (?P<amount>\d{1,9}(?:\.\d+)?) (?P<unit>[KMGTPE]iB|B)")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_HINT = "hint"
_OF_WRITE = "advisory size of the write"
_FOR_SIZE = "not used"
_OF_PRODUCT = "minTaskVolume, under a join"


def is_left_alone(decision: Decision) -> bool:
    """Whether nothing was decided, as where the query gives the number of partitions."""
    return decision.data_volume_per_task is None


def of_write(decision: Decision) -> int | None:
    """Return the bytes that a write wants for each task, if it does."""
    is_of_write = decision.sources.get("dataVolumePerTask") == _OF_WRITE
    return decision.data_volume_per_task if is_of_write else None


def multiplies_rows(decision: Decision) -> bool:
    """Whether tasks run a join that multiplies rows, so that they should read less."""
    return decision.sources.get("dataVolumePerTask", "").startswith(_OF_PRODUCT)


def is_fixed_scan(decision: Decision) -> bool:
    """Whether a hint, or an option of the reader, gives the tasks of a scan."""
    set_by = str((decision.sources or {}).get("parallelism", ""))
    return decision.kind == "explicit" and set_by.startswith((_HINT, "option"))


def policy(decision: Decision, confs: Confs, slots: int) -> Policy:
    """Return the policy for a group of shuffles: what hints and writes say is as logged.

    Bounds that hints set are not in decisions; those of the session stand for them.
    """
    found = Policy.of(confs, slots)
    volume, sources = decision.data_volume_per_task, decision.sources

    def is_hinted(setting: str) -> bool:
        return sources.get(setting, "").startswith(_HINT)

    if volume is not None and (is_hinted("dataVolumePerTask") or of_write(decision)):
        found = dataclasses.replace(found, volume=volume)
    if sources.get("mode", "").startswith(_FOR_SIZE):
        found = dataclasses.replace(found, slots=None)
    if multiplies_rows(decision):
        found = dataclasses.replace(found, volume=min(found.volume, found.min_task_volume))
    if is_hinted("parallelism") and "explicit" in decision.clamps:
        found = dataclasses.replace(found, parallelism=max(1, decision.parallelism))
    if is_hinted("ranges") and decision.layout in ("even", "balanced"):
        found = dataclasses.replace(found, balanced=decision.layout == "balanced")
    if is_hinted("broadcastRatio") and volume and decision.broadcast_cap is not None:
        ratio = min(max(decision.broadcast_cap / volume, 0.0), 1.0)
        found = dataclasses.replace(found, broadcast_ratio=ratio)
    return found


def estimate(why: str) -> int | None:
    """Return the bytes in what a number of subpartitions was made of, as rounded as they are."""
    match = _ESTIMATE.search(why)
    if not match:
        return None
    return int(float(match["amount"]) * (1 << 10 * _UNITS.index(match["unit"])))

"""Decisions and policies in events."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from apportion.decision import Decision, HeldRows, InvalidRecordError
from apportion.logs.eventlog.input import values
from apportion.logs.eventlog.input.values import LARGEST
from apportion.logs.eventlog.model import LoggedPolicy, LoggedShuffle


def printable(decision: Decision) -> Decision:
    """Return a decision without control characters."""
    return dataclasses.replace(
        decision,
        operator=values.text(decision.operator),
        clamps=list(map(values.text, decision.clamps)),
        layout=values.text(decision.layout),
        sources=values.texts(decision.sources),
        kind=values.text(decision.kind),
        reason=values.text(decision.reason),
    )


def shuffles(record: Mapping[str, Any], sizes: list[list[int]]) -> list[LoggedShuffle]:
    """Return the shuffles of a decision. Logs without `inputs` have only their bytes."""
    inputs = record.get("inputs") or [{}] * len(sizes)
    return [
        LoggedShuffle(
            bytes=partition_bytes,
            exchange_metric=values.optional_int(fields.get("exchange_metric")),
            range_partitioned=fields.get("range_partitioned") is True,
            splittable=fields.get("splittable") is True,
            held=_held(fields.get("held") or {}),
            partitions_set_by=values.optional_text(fields.get("partitions_set_by")),
            **_tree(fields),
        )
        for partition_bytes, fields in zip(sizes, inputs, strict=True)
    ]


def _tree(fields: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return the levels of the tree that map tasks wrote."""
    groups = list(map(int, fields.get("groups", ())))
    sizes = list(map(int, fields.get("bytes_by_level", ())))
    ascending = all(0 < coarse < fine for coarse, fine in pairwise([*groups, 2**31]))
    if not ascending or len(sizes) != len(groups) or not all(0 <= n < LARGEST for n in sizes):
        raise InvalidRecordError("the levels of a shuffle contradict each other")
    return {"groups": groups, "bytes_by_level": sizes}


def policy(fields: Mapping[str, Any] | None) -> LoggedPolicy | None:
    if not fields:
        return None
    policy = LoggedPolicy(
        data_volume_per_task=int(fields["data_volume_per_task"]),
        broadcast_ratio=float(fields["broadcast_ratio"]),
        min_parallelism=int(fields["min_parallelism"]),
        max_parallelism=int(fields["max_parallelism"]),
        min_task_volume=int(fields["min_task_volume"]),
        ranges=values.text(fields["ranges"]),
        rounding=values.text(fields["rounding"]),
        parallelism=values.optional_int(fields.get("parallelism")),
        task_memory=values.optional_int(fields.get("task_memory")),
    )
    explicit = 1 if policy.parallelism is None else policy.parallelism
    counts = [policy.min_parallelism, policy.max_parallelism, explicit]
    sizes = [policy.data_volume_per_task, policy.min_task_volume]
    if not all(0 < count < 2**31 for count in counts) or not all(0 < n < LARGEST for n in sizes):
        raise InvalidRecordError("a value in the policy is out of range")
    if policy.min_parallelism > policy.max_parallelism or not 0 < policy.broadcast_ratio < 1:
        raise InvalidRecordError("the policy contradicts itself")
    return policy


def _held(fields: Mapping[str, Any]) -> HeldRows:
    return HeldRows(
        values.ratio(fields.get("per_byte", 0)),
        [values.ratio(each) for each in fields.get("arrays", ())],
    )

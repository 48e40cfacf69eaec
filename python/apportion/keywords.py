"""The settings by keyword, for completion and type checks in editors.

`make generated` writes this file from the settings of the extension.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, TypedDict


@dataclasses.dataclass(frozen=True)
class SettingsFields:
    """The fields of `apportion.Settings`, which describes the values."""

    enabled: bool | None = None
    mode: Literal["auto", "active", "reactive", "observe"] | None = None
    rules_disabled: str | None = None
    policies: str | None = None
    history_path: str | None = None
    data_volume_per_task: int | str | None = None
    min_parallelism: int | None = None
    max_parallelism: int | None = None
    parallelism: int | None = None
    min_task_volume: int | str | None = None
    broadcast_ratio: float | None = None
    volume_measure: Literal["compressed", "estimated"] | None = None
    ranges: Literal["even", "balanced"] | None = None
    rounding: Literal["power-of-two", "exact", "waves"] | None = None
    memory_enabled: bool | None = None
    memory_fraction: float | None = None
    splits_with_other_shuffle_managers: bool | None = None
    target_task_time: int | str | None = None
    write_target_file_size: int | str | None = None
    sources_enabled: bool | None = None
    sources_parallelism: int | None = None
    sources_max_parallelism: int | None = None
    sources_default_parallelism: int | None = None
    hints_strict: bool | None = None
    resources_min_slots: int | None = None
    resources_target_slots: int | None = None
    resources_max_slots: int | None = None
    resources_timeout: int | str | None = None
    resources_rescaling: str | None = None
    resources_finish_within: int | str | None = None
    resources_request: bool | None = None
    events_enabled: bool | None = None


class SettingsKeywords(TypedDict, total=False):
    """The same as keyword arguments."""

    enabled: bool | None
    mode: Literal["auto", "active", "reactive", "observe"] | None
    rules_disabled: str | None
    policies: str | None
    history_path: str | None
    data_volume_per_task: int | str | None
    min_parallelism: int | None
    max_parallelism: int | None
    parallelism: int | None
    min_task_volume: int | str | None
    broadcast_ratio: float | None
    volume_measure: Literal["compressed", "estimated"] | None
    ranges: Literal["even", "balanced"] | None
    rounding: Literal["power-of-two", "exact", "waves"] | None
    memory_enabled: bool | None
    memory_fraction: float | None
    splits_with_other_shuffle_managers: bool | None
    target_task_time: int | str | None
    write_target_file_size: int | str | None
    sources_enabled: bool | None
    sources_parallelism: int | None
    sources_max_parallelism: int | None
    sources_default_parallelism: int | None
    hints_strict: bool | None
    resources_min_slots: int | None
    resources_target_slots: int | None
    resources_max_slots: int | None
    resources_timeout: int | str | None
    resources_rescaling: str | None
    resources_finish_within: int | str | None
    resources_request: bool | None
    events_enabled: bool | None

"""Types of the settings as keywords, for completion and type checks in editors.

A test compares them with the fields of `Settings`.
"""

from __future__ import annotations

from typing import Literal, TypedDict


class SettingsKeywords(TypedDict, total=False):
    """Settings by keyword. `apportion.Settings` describes the values."""

    enabled: bool | None
    mode: Literal["auto", "active", "reactive", "observe"] | None
    rules_disabled: str | None
    policies: str | None
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
    target_task_time: int | str | None
    write_target_file_size: int | str | None
    max_blocks_per_task: int | None
    splits_with_other_shuffle_managers: bool | None
    adaptive_writes: bool | None
    history_path: str | None
    sources_enabled: bool | None
    sources_parallelism: int | None
    sources_max_parallelism: int | None
    sources_default_parallelism: int | None
    hints_strict: bool | None
    resources_min_slots: int | None
    resources_target_slots: int | None
    resources_max_slots: int | None
    resources_request: bool | None
    resources_timeout: int | str | None
    resources_stabilization: int | str | None
    resources_cooldown: int | str | None
    resources_rescaling: str | None
    resources_finish_within: int | str | None
    resources_poll_interval: int | str | None
    retained_decisions: int | None
    events_enabled: bool | None

"""Dataclasses as data for JSON."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any


def plain(value: Any) -> Any:
    """Return dataclasses and enums as data for JSON, with floats rounded to six digits."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {
            field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return round(value, 6) if isinstance(value, float) else value

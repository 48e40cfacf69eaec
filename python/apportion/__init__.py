"""Apportion sets the number of tasks for every shuffle in a Spark SQL query, and explains it.

import apportion

spark = apportion.get_or_create(data_volume_per_task="64MB")
spark.sql("SELECT ...").show()
for decision in apportion.decisions(spark):
    print(decision.reason)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from apportion.decision import Decision, Input, decide, decisions
from apportion.errors import ApportionError, InputError, SettingError
from apportion.session import configure, get_or_create
from apportion.settings import Settings

if TYPE_CHECKING:
    from apportion import eventlog, hints, keys
    from apportion.logs.explanation.explained import Explained, explain

__all__ = [
    "ApportionError",
    "Decision",
    "Explained",
    "Input",
    "InputError",
    "SettingError",
    "Settings",
    "configure",
    "decide",
    "decisions",
    "eventlog",
    "explain",
    "get_or_create",
    "hints",
    "keys",
]


def __getattr__(name: str) -> Any:
    # These modules take longer to import than all others together.
    if name in ("eventlog", "hints", "keys"):
        return import_module(f"apportion.{name}")
    if name in ("Explained", "explain"):
        from apportion.logs.explanation import explained

        return getattr(explained, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Apportion decides how many tasks read each shuffle of a Spark SQL query, and says why.

import apportion

spark = apportion.get_or_create(data_volume_per_task="64MB")
spark.sql("SELECT ...").show()
for decision in apportion.decisions(spark):
    print(decision.reason)
"""

from apportion.decision import Decision, Input, decide, decisions
from apportion.errors import ApportionError, InputError, SettingError
from apportion.explaining.explained import Explained, explain
from apportion.session import configure, get_or_create
from apportion.settings import Settings

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
    "explain",
    "get_or_create",
]

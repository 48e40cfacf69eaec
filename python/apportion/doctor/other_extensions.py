"""Checks of other extensions and plugins.

The notes on each extension come from its source code.
"""

from __future__ import annotations

from collections.abc import Iterator

from apportion.doctor.configuration import EXTENSIONS
from apportion.doctor.finding import Finding, Setup, Verdict

_PLUGINS = "spark.plugins"
_KYUUBI = "org.apache.kyuubi.sql.KyuubiSparkSQLExtension"
_KYUUBI_PARTITIONS = "spark.sql.optimizer.dynamicShufflePartitions"

# Notes on extensions that work with Apportion.
_KNOWN = {
    "io.delta.sql.DeltaSparkSessionExtension": (
        "Delta Lake has no rules in adaptive execution. Apportion does not change the shuffle of "
        "its optimized writes"
    ),
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions": (
        "Iceberg has no rules in adaptive execution. Apportion keeps the target size per task of "
        "its writes, and Iceberg splits the scans of its tables itself"
    ),
    _KYUUBI: "Kyuubi's rules do not change shuffle reads",
    "org.apache.comet.CometSparkSessionExtensions": (
        "Comet writes its shuffles itself, in Spark's number of partitions, and Apportion decides "
        "how many tasks read them"
    ),
    "org.apache.gluten.GlutenPlugin": (
        "Gluten replaces Spark's operators when a stage is created, after Apportion's decision"
    ),
    "com.nvidia.spark.SQLPlugin": (
        "the RAPIDS Accelerator replaces Spark's operators when a stage is created, after "
        "Apportion's decision"
    ),
}


def compatibility(setup: Setup) -> Iterator[Finding]:
    """Check whether each other extension or plugin is compatible with Apportion."""
    for key in (EXTENSIONS, _PLUGINS):
        for name in setup.conf.listed(key):
            if "apportion" not in name.lower():
                verdict, advice = _examined(setup, name)
                yield Finding("Other extensions", f"{name} ({key})", verdict, advice)


def _examined(setup: Setup, name: str) -> tuple[Verdict, str]:
    partitions = setup.conf.find(_KYUUBI_PARTITIONS)
    if name == _KYUUBI and partitions and partitions.value.lower() == "true":
        return "warning", (
            f"{_KYUUBI_PARTITIONS} ({partitions.source}) also chooses numbers of shuffle "
            f"partitions, and the last extension in {EXTENSIONS} wins: set it to false"
        )
    return "ok", _KNOWN.get(name, "the doctor does not know this extension")

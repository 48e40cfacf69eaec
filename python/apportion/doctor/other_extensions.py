"""Other extensions beside Apportion: what is known of them, by their own sources."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._spark.jvm import EXTENSION
from apportion.doctor.configuration import EXTENSIONS
from apportion.doctor.finding import Finding, Setup, Verdict

_PLUGINS = "spark.plugins"
_COMET = "org.apache.comet.CometSparkSessionExtensions"
_KYUUBI = "org.apache.kyuubi.sql.KyuubiSparkSQLExtension"
_KYUUBI_PARTITIONS = "spark.sql.optimizer.dynamicShufflePartitions"

# What there is to know of each, where nothing is in the way.
_KNOWN = {
    "io.delta.sql.DeltaSparkSessionExtension": (
        "Delta Lake has no rules in adaptive execution. Its optimized writes have a shuffle of "
        "their own, which is not decided"
    ),
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions": (
        "Iceberg has no rules in adaptive execution. Its writes bring their own volume a task, "
        "which is kept, and it cuts scans of its tables itself"
    ),
    _KYUUBI: "Kyuubi's rules leave reads of shuffles alone",
    _COMET: "Comet replaces Spark's exchanges after Apportion has chosen their subpartitions",
    "org.apache.gluten.GlutenPlugin": (
        "Gluten replaces Spark's operators when a stage is made, after Apportion has decided"
    ),
    "com.nvidia.spark.SQLPlugin": (
        "the RAPIDS Accelerator replaces Spark's operators when a stage is made, after Apportion "
        "has decided"
    ),
}


def neighbours(setup: Setup) -> Iterator[Finding]:
    """Each other extension or plugin: whether it and Apportion get in each other's way."""
    for key in (EXTENSIONS, _PLUGINS):
        for name in setup.conf.listed(key):
            if "apportion" not in name.lower():
                verdict, advice = _examined(setup, name)
                yield Finding("Other extensions", f"{name} ({key})", verdict, advice)


def _examined(setup: Setup, name: str) -> tuple[Verdict, str]:
    if name == _COMET and _comes_first(setup, _COMET):
        return "warning", (
            "Comet comes first and replaces Spark's exchanges, so that Apportion cannot choose "
            f"their subpartitions: name {EXTENSION} before it in {EXTENSIONS}"
        )
    partitions = setup.conf.find(_KYUUBI_PARTITIONS)
    if name == _KYUUBI and partitions and partitions.value.lower() == "true":
        return "warning", (
            f"{_KYUUBI_PARTITIONS} ({partitions.source}) chooses numbers of subpartitions as well, "
            f"and of the two the one that {EXTENSIONS} names last counts: set it to false"
        )
    return "ok", _KNOWN.get(name, "nothing is known of it")


def _comes_first(setup: Setup, other: str) -> bool:
    names = setup.conf.listed(EXTENSIONS)
    # apportion.configure() adds Apportion after what is there.
    return EXTENSION not in names or names.index(other) < names.index(EXTENSION)

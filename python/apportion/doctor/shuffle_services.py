"""Check of the shuffle manager: remote shuffle services replace Spark's own."""

from __future__ import annotations

from collections.abc import Iterator

from apportion.doctor.finding import Finding, Setup

_MANAGER = "spark.shuffle.manager"
_SPLITS = "spark.apportion.splitsWithOtherShuffleManagers"
_OWN = ("sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager")
# Names of services by a part of their shuffle manager's class, the special ones first.
_SERVICES = {
    "celeborn": "Apache Celeborn",
    "uniffle": "Apache Uniffle",
    "DelegationRssShuffleManager": "Apache Uniffle",
    # Uniffle and Uber's RSS have a class of this name.
    "RssShuffleManager": "Apache Uniffle or Uber's Remote Shuffle Service",
    "splash": "Splash",
    "s3shuffle": "a shuffle plugin for object stores",
    "S3ShuffleManager": "a shuffle plugin for object stores",
    "RapidsShuffleManager": "the RAPIDS Accelerator's shuffle",
    "CometShuffleManager": "Comet's shuffle",
    "gluten": "Gluten's shuffle",
}


def restrictions(setup: Setup) -> Iterator[Finding]:
    """Name a shuffle manager that is not Spark's own, and the parts of Apportion that are off."""
    entry = setup.conf.find(_MANAGER)
    if entry is None or entry.value.strip() in _OWN:
        return
    known = [name for part, name in _SERVICES.items() if part.lower() in entry.value.lower()]
    service = known[0] if known else "a shuffle manager that the doctor does not know"
    splits = setup.conf.find(_SPLITS)
    if splits and splits.value.strip().lower() == "true":
        advice = (
            f"{service}: Apportion splits skewed partitions and reads map outputs locally, because "
            f"{_SPLITS} is true. Check with a skewed join that your service reads these fast"
        )
    else:
        advice = (
            f"{service}: Apportion decides how many tasks read shuffles, without adaptive writes, "
            f"splits and local reads. Set {_SPLITS}=true if your service reads the output of "
            "single map tasks fast"
        )
    yield Finding("Shuffle manager", setup.conf.shown(_MANAGER), "ok", advice)

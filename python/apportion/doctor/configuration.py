"""Checks of Spark's conf: the extension, adaptive execution, and settings."""

from __future__ import annotations

from collections.abc import Iterator

from apportion._spark.jvm import EXTENSION
from apportion.doctor import jar_files
from apportion.doctor.conf import SUBMIT_ARGS, Conf, Entry, submit_arguments
from apportion.doctor.finding import Finding, Setup
from apportion.errors import SettingError, did_you_mean
from apportion.settings import PREFIX, find, parse_assignments, registry

EXTENSIONS = "spark.sql.extensions"
_ADAPTIVE = "spark.sql.adaptive.enabled"
_COALESCING = "spark.sql.adaptive.coalescePartitions."
_COALESCES = f"{_COALESCING}enabled"
# Apportion makes at least this number of shuffle partitions.
_STILL_READ = {_COALESCES, f"{_COALESCING}initialPartitionNum"}


def arguments(setup: Setup) -> Iterator[Finding]:
    """Check that pyspark can start Spark with PYSPARK_SUBMIT_ARGS, if it is set."""
    if setup.session is None and (words := submit_arguments()):
        if words[-1] == "pyspark-shell":
            yield Finding("Submit arguments", f"{SUBMIT_ARGS} ends with pyspark-shell")
        else:
            # Other words are not shown, because they can contain secrets.
            looked_at = f"{SUBMIT_ARGS} does not end with pyspark-shell"
            advice = "pyspark cannot start Spark with these arguments: put pyspark-shell at the end"
            yield Finding("Submit arguments", looked_at, "problem", advice)


def extension(setup: Setup) -> Iterator[Finding]:
    """Check that Spark loads Apportion."""
    names = setup.conf.listed(EXTENSIONS)
    looked_at = setup.conf.shown(EXTENSIONS)
    others = [name for name in names if "apportion" not in name.lower()]
    # Apportion comes first, because some extensions replace the exchanges that it looks for.
    right = f"--conf {EXTENSIONS}={','.join([EXTENSION, *others])}"
    wrong = [name for name in names if name not in (*others, EXTENSION)]
    if wrong:
        advice = (
            f"there is no class {wrong[0]}: Spark only logs a warning and continues without it. "
            f"Use {right}"
        )
        yield Finding("Extension", looked_at, "problem", advice)
    elif names.count(EXTENSION) > 1:
        advice = f"{EXTENSION} is named twice, so its rules would run twice. Use {right}"
        yield Finding("Extension", looked_at, "problem", advice)
    elif EXTENSION in names:
        yield Finding("Extension", looked_at)
    elif setup.session is not None or _is_meant(setup):
        advice = f"nothing loads Apportion, so it makes no decisions. Use {right}"
        yield Finding("Extension", looked_at, "problem", advice)
    else:
        advice = (
            "apportion.configure() and get_or_create() load Apportion. Other programs need "
            f"--jars $(apportion jar) {right}"
        )
        yield Finding("Extension", looked_at, "ok", advice)


def adaptive(setup: Setup) -> Iterator[Finding]:
    """Check that adaptive execution and Apportion are on."""
    if setup.conf.is_false(_ADAPTIVE):
        advice = (
            "Apportion makes its decisions in adaptive execution, which is off: remove the setting "
            "(Spark's default is true)"
        )
        yield Finding("Adaptive execution", setup.conf.shown(_ADAPTIVE), "problem", advice)
    else:
        yield Finding("Adaptive execution", setup.conf.shown(_ADAPTIVE))
    if setup.conf.is_false(f"{PREFIX}enabled"):
        looked_at = setup.conf.shown(f"{PREFIX}enabled")
        yield Finding("Adaptive execution", looked_at, "warning", "Apportion is switched off")
    yield from _switches(setup.conf)


def _switches(conf: Conf) -> Iterator[Finding]:
    """Yield warnings about settings that switch off parts of Apportion."""
    mode, disabled = conf.find(f"{PREFIX}mode"), conf.listed(f"{PREFIX}rules.disabled")
    if mode and mode.value.strip().lower() == "observe":
        advice = (
            "Apportion only records decisions, and Spark runs its own plans. To apply the "
            f"decisions, set {PREFIX}mode=auto"
        )
        yield Finding("Mode", conf.shown(mode.key), "warning", advice)
    if disabled:
        advice = f"these rules of Apportion are switched off: {', '.join(disabled)}"
        yield Finding("Rules", conf.shown(f"{PREFIX}rules.disabled"), "warning", advice)


def coalescing(setup: Setup) -> Iterator[Finding]:
    """Find settings of Spark's coalescing that stop Apportion, or have no effect with it."""
    if setup.conf.is_false(_COALESCES):
        advice = "Apportion keeps the tasks of shuffles as Spark makes them: remove this setting"
        yield Finding("Spark's coalescing", setup.conf.shown(_COALESCES), "warning", advice)
    unused = [
        entry
        for entry in setup.conf
        if entry.key.startswith(_COALESCING) and entry.key not in _STILL_READ
    ]
    if unused:
        yield Finding(
            "Spark's coalescing",
            "; ".join(setup.conf.shown(entry.key) for entry in unused),
            "warning",
            "these settings have no effect while Apportion is on: `apportion settings` lists "
            f"Apportion's settings. To use Spark's coalescing instead, set {PREFIX}enabled=false",
        )


def settings(setup: Setup) -> Iterator[Finding]:
    """Check the names and values of Apportion's settings."""
    own = [entry for entry in setup.conf if entry.key.lower().startswith(PREFIX)]
    wrong = [finding for entry in own for finding in _setting(setup.conf, entry)]
    wrong = wrong or list(_bounds(setup.conf, own))
    yield from wrong
    if not wrong:
        yield Finding(
            "Settings",
            "; ".join(setup.conf.shown(entry.key) for entry in own) or f"no {PREFIX}* is set",
        )


def _setting(conf: Conf, entry: Entry) -> Iterator[Finding]:
    try:
        setting = find(entry.key)
    except SettingError:
        keys = [setting.key for setting in registry().values()]
        advice = (
            f"unknown setting, which Spark silently ignores.{did_you_mean(entry.key, keys)} "
            "`apportion settings` lists all settings"
        )
        yield Finding("Settings", conf.shown(entry.key), "problem", advice)
        return
    try:
        setting.check(entry.value)
    except SettingError as error:
        yield Finding("Settings", conf.shown(entry.key), "problem", str(error))


def _bounds(conf: Conf, own: list[Entry]) -> Iterator[Finding]:
    try:
        parse_assignments(f"{entry.key}={entry.value}" for entry in own)
    except SettingError as error:
        looked_at = "; ".join(conf.shown(entry.key) for entry in own if "Parallelism" in entry.key)
        yield Finding("Settings", looked_at, "problem", str(error))


def _is_meant(setup: Setup) -> bool:
    """Return whether the conf has a jar or a setting of Apportion."""
    has_jar = next(jar_files.given(setup), None) is not None
    return has_jar or any(entry.key.lower().startswith(PREFIX) for entry in setup.conf)

from __future__ import annotations

import dataclasses
from itertools import groupby
from typing import Any, get_type_hints

import numpy as np
import pytest

from apportion import SettingError, Settings
from apportion.settings import check_static, find, parse_assignments, registry

TYPES: dict[str, Any] = {
    "boolean": bool | None,
    "int": int | None,
    "size": int | str | None,
    "duration": int | str | None,
    "double": float | None,
    "text": str | None,
    "list": str | None,
}


def test_the_fields_of_settings_match_the_registry() -> None:
    hints = get_type_hints(Settings)
    assert [field.name for field in dataclasses.fields(Settings)] == list(registry())
    for keyword, setting in registry().items():
        if setting.type == "choice":
            choices = [
                text for text in setting.allowed["choices"] if repr(text) in str(hints[keyword])
            ]
            assert choices == setting.allowed["choices"], keyword
        else:
            assert hints[keyword] == TYPES[setting.type], keyword


def test_settings_of_a_category_are_adjacent() -> None:
    categories = [category for category, _ in groupby(s.category for s in registry().values())]
    assert len(categories) == len(set(categories)) > 1


def test_default_texts_have_units() -> None:
    texts = {
        setting.default_text
        for setting in registry().values()
        if setting.type in ("size", "duration")
    }
    assert texts == {"not set", "0 s", "1 MiB", "5 min", "10 min"}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(30, 30), ("30", 30), ("30s", 30), (" 5MIN ", 300), ("5m", 300), ("1h", 3600)],
)
def test_times_are_converted_to_seconds(text: int | str, seconds: int) -> None:
    assert Settings(resources_timeout=text).resources_timeout == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        (2**63 - 1, 2**63 - 1),
        ("64", 64),
        ("64b", 64),
        ("64k", 64 << 10),
        ("64kb", 64 << 10),
        ("64m", 64 << 20),
        ("64MB", 64 << 20),
        ("64MiB", 64 << 20),
        (" 2G ", 2 << 30),
        ("3tb", 3 << 40),
        ("1PiB", 1 << 50),
    ],
)
def test_sizes_are_converted_to_bytes(text: int | str, size: int) -> None:
    assert Settings(data_volume_per_task=text).data_volume_per_task == size


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resources_timeout": -1}, "resources_timeout is -1: allowed is 0 seconds or more"),
        ({"resources_timeout": "soon"}, "resources_timeout is 'soon': allowed is 0 seconds"),
        ({"data_volume_per_task": 0}, "data_volume_per_task is 0: allowed is a size of 1"),
        ({"data_volume_per_task": "0MB"}, "data_volume_per_task is '0MB': allowed is a size of"),
        ({"data_volume_per_task": "1.5GiB"}, "data_volume_per_task is '1.5GiB'"),
        ({"data_volume_per_task": "64ib"}, "data_volume_per_task is '64ib'"),
        ({"data_volume_per_task": "-1MB"}, "data_volume_per_task is '-1MB'"),
        ({"data_volume_per_task": "8192p"}, "data_volume_per_task is '8192p'"),
        ({"data_volume_per_task": "9" * 5000}, "data_volume_per_task is '999"),
        ({"data_volume_per_task": 1.5}, "data_volume_per_task is 1.5"),
        ({"data_volume_per_task": True}, "data_volume_per_task is True"),
        ({"min_task_volume": 2**63}, "min_task_volume is 9223372036854775808"),
        ({"history_path": " "}, "history_path is ' ': allowed is a directory, such as /folder"),
        ({"history_path": 7}, "history_path is 7: allowed is a directory"),
        ({"history_path": "a:b:c"}, "history_path is 'a:b:c': allowed is a directory"),
        ({"history_path": "::::"}, "history_path is '::::': allowed is a directory"),
        ({"parallelism": 0}, r"parallelism is 0: allowed is 1 or more, or -1 \(decide\)"),
        ({"parallelism": -2}, "parallelism is -2"),
        ({"min_parallelism": 0}, r"min_parallelism is 0: .* \(spark\.apportion\.minPar"),
        ({"min_parallelism": "four"}, "min_parallelism is 'four'"),
        ({"max_parallelism": 2**31}, "max_parallelism is 2147483648"),
        ({"max_parallelism": True}, "max_parallelism is True"),
        ({"max_parallelism": np.array([4, 8])}, r"max_parallelism is array\(\[4, 8\]\)"),
        ({"broadcast_ratio": 0.0}, "broadcast_ratio is 0.0: allowed is above 0.0 and below 1.0"),
        ({"broadcast_ratio": 1}, "broadcast_ratio is 1"),
        ({"broadcast_ratio": float("nan")}, "broadcast_ratio is nan"),
        ({"ranges": "odd"}, "ranges is 'odd': allowed is one of even, balanced"),
        ({"mode": "passive"}, "mode is 'passive': allowed is one of auto, active, reactive, obs"),
        ({"rules_disabled": "LocalRead"}, "rules_disabled is 'LocalRead': allowed is any of Adapt"),
        (
            {"ranges": "balanced", "rounding": "exact", "min_parallelism": 9, "max_parallelism": 8},
            "the first must not be above the second",
        ),
        ({"enabled": 1}, "enabled is 1: allowed is true or false"),
        ({"enabled": "yes"}, "enabled is 'yes': allowed is true or false"),
        ({"parallel": 4}, "Similar: min_parallelism, max_parallelism, parallelism"),
        ({"min_paralelism": 4}, "unknown setting 'min_paralelism'. Did you mean min_parallelism?"),
        ({"minParallelism": 4}, "unknown setting 'minParallelism'. Did you mean min_parallelism?"),
        ({"colour": 4}, "unknown setting 'colour'. `apportion settings` lists all"),
        ({"min_parallelism": 5, "max_parallelism": 7}, "the first to 4 or less, .* second to 8"),
        ({"min_parallelism": 9, "max_parallelism": 8}, "there is no power of two"),
    ],
)  # fmt: skip
def test_invalid_settings_raise(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Settings.from_kwargs(**settings)


def test_numbers_of_numpy_and_text_of_config_files_are_allowed() -> None:
    settings = Settings.from_kwargs(
        enabled="TRUE",
        min_parallelism="4",
        max_parallelism=np.int64(8),
        broadcast_ratio=np.float64(0.25),
        data_volume_per_task="64 MB",
    )
    assert settings == Settings(
        enabled=True,
        min_parallelism=4,
        max_parallelism=8,
        broadcast_ratio=0.25,
        data_volume_per_task=64 << 20,
    )


def test_bounds_with_a_power_of_two_between_them_are_allowed() -> None:
    assert Settings(min_parallelism=5, max_parallelism=8).max_parallelism == 8
    assert Settings(min_parallelism=7, max_parallelism=15).min_parallelism == 7


def test_exact_balanced_ranges_need_no_power_of_two() -> None:
    settings = Settings(ranges="balanced", rounding="exact", min_parallelism=5, max_parallelism=7)
    assert settings.min_parallelism == 5


def test_to_conf_has_only_the_given_settings() -> None:
    settings = Settings(
        enabled=False,
        min_parallelism=2,
        data_volume_per_task="1k",
        broadcast_ratio=0.3,
        mode="active",
    )
    assert settings.to_conf() == {
        "spark.apportion.enabled": "false",
        "spark.apportion.minParallelism": "2",
        "spark.apportion.dataVolumePerTask": "1024",
        "spark.apportion.broadcastRatio": "0.3",
        "spark.apportion.mode": "active",
    }


@pytest.mark.parametrize(
    "path", ["/history", "history", "hdfs://host:8020/history", "s3a://bucket"]
)
def test_valid_directories_of_the_history_are_allowed(path: str) -> None:
    assert Settings(history_path=path).history_path == path


def test_a_changed_static_setting_raises() -> None:
    assert [setting.keyword for setting in registry().values() if setting.static] == [
        "policies",
        "history_path",
    ]
    key = "spark.apportion.history.path"
    check_static({"spark.apportion.mode": "active"}, {})
    check_static({key: "/a"}, {key: "/a"})
    for running in ({}, {key: "/b"}):
        with pytest.raises(SettingError, match=r"history_path cannot be changed while Spark runs"):
            check_static({key: "/a"}, running)


def test_merged_settings_are_checked_together() -> None:
    settings = Settings(min_parallelism=5, mode="active")
    assert settings.merged(mode="reactive") == Settings(min_parallelism=5, mode="reactive")
    with pytest.raises(SettingError, match="no power of two"):
        settings.merged(max_parallelism=7)


@pytest.mark.parametrize(
    "name", ["min_parallelism", "minParallelism", "spark.apportion.minParallelism"]
)
def test_a_setting_is_found_by_keyword_name_and_key(name: str) -> None:
    assert find(name).keyword == "min_parallelism"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("enabled", "False", False),
        ("parallelism", "-1", -1),
        ("broadcast_ratio", "0.25", 0.25),
        ("mode", "ACTIVE", "active"),
        ("min_task_volume", "1MB", 1 << 20),
        ("rules_disabled", " ScanTasks, LocalReads,", "ScanTasks,LocalReads"),
        ("rules_disabled", "", ""),
    ],
)
def test_texts_are_parsed_by_type(name: str, text: str, value: object) -> None:
    assert find(name).check(text) == value


@pytest.mark.parametrize(
    ("name", "text"), [("enabled", "yes"), ("parallelism", "many"), ("broadcast_ratio", "half")]
)
def test_invalid_texts_raise(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=f"{name} is '{text}': allowed is"):
        find(name).check(text)


def test_assignments_are_parsed_to_confs() -> None:
    texts = ["data_volume_per_task=16MB", "spark.apportion.mode=active", "spark.a=b=c"]
    assert parse_assignments(texts) == {
        "spark.apportion.dataVolumePerTask": str(16 << 20),
        "spark.apportion.mode": "active",
        "spark.a": "b=c",
    }
    assert parse_assignments(["mode=active", "mode=auto"]) == {"spark.apportion.mode": "auto"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spark.apportion.mod=active", r"unknown setting 'spark\.apportion\.mod'.*mean mode"),
        ("parallelism=0", "parallelism is 0: allowed is 1 or more"),
        ("parallelism", "'parallelism' has no value: write NAME=VALUE"),
    ],
)
def test_invalid_assignments_raise(text: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        parse_assignments([text])


def test_internal_settings_are_checked_but_not_listed() -> None:
    assert find("spark.apportion.resources.cooldown").category == "Internal"
    assert "resources_cooldown" not in registry()
    conf = parse_assignments(["resources.cooldown=1min", "min_parallelism=2"])
    assert conf == {
        "spark.apportion.resources.cooldown": "60",
        "spark.apportion.minParallelism": "2",
    }
    with pytest.raises(SettingError, match="adaptive_writes is 'maybe'"):
        parse_assignments(["adaptive_writes=maybe"])

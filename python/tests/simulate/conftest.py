from __future__ import annotations

from pathlib import Path

import pytest

from apportion import eventlog
from apportion.logs.eventlog import Application

from . import logs


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return logs.write(tmp_path / "log", [*logs.application(), *logs.query()])


@pytest.fixture
def application(log: Path) -> Application:
    return eventlog.read(log)

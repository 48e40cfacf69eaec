"""What tests need of the Spark that runs."""

from __future__ import annotations

import pytest

from apportion._spark import jars

INSTALLED = jars.installed_spark().minor


def since(minor: str) -> pytest.MarkDecorator:
    """Skip a test on an older Spark."""
    return pytest.mark.skipif(minor > INSTALLED, reason=f"since Spark {minor}")

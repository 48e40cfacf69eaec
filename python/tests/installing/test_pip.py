"""The wheel with the Spark of the package pyspark, and a checkout that is installed editable."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.bare import Bare
from tests.docs.pages import ROOT, blocks

from .distributions import Distributions

README = "\n".join(block.text for block in blocks("python") if block.page == "README.md")


@pytest.mark.slow
def test_the_wheel_works_with_pyspark(built: Distributions, tmp_path: Path) -> None:
    with Bare(tmp_path, f"{built.wheel}[spark]") as bare:
        printed = bare.python(README)
        assert re.search(r"\d+ tasks read \d+ shuffle partitions\n\d+ tasks: .*\.\n", printed)
        assert "site-packages/apportion/jars/" in bare.run("apportion", "jar")
        assert "HashAggregate: 1 task" in bare.run("apportion", "doctor")


@pytest.mark.slow
def test_an_editable_install_of_a_checkout_works(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    left_out = shutil.ignore_patterns(".git", ".venv", "target", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, checkout, ignore=left_out)
    shutil.copytree(ROOT / "target" / "jars", checkout / "target" / "jars")
    with Bare(tmp_path, "--editable", f"{checkout}[spark]") as bare:
        assert str(checkout / "target" / "jars") in bare.run("apportion", "jar")
        assert "HashAggregate: 1 task" in bare.run("apportion", "doctor")

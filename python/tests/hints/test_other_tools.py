"""SQLMesh and dbt install beside Apportion, and the programs of the docs work with both."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# The programs above this heading need a session.
PAGE = (ROOT / "docs/hints.md").read_text("utf-8").partition("## Change hints from a program")[2]
PROGRAMS = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
# dbt 1.11 and later download a parser from outside of the package index.
TOOLS = ["sqlmesh", "dbt-core<1.11", "dbt-spark"]

PROJECT = {
    "dbt_project.yml": "{name: shop, version: '1.0', profile: shop}",
    "profiles.yml": "shop: {target: dev, outputs: {dev: {type: spark, method: session, "
    "schema: shop, host: NA}}}",
    "models/totals.sql": "select city, sum(price) as total from {{ ref('orders') }} group by city",
    "models/orders.sql": "select 'Rome' as city, 1 as price",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the tools, and with what Apportion needs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder / "venv", with_pip=True)
    needed = [each for each in importlib.metadata.requires("apportion") or [] if ";" not in each]
    python = folder / "venv/bin/python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *needed, *TOOLS], check=True)
    # dbt imports Spark, which is large and already installed.
    (folder / "spark").mkdir()
    for name in ("pyspark", "py4j"):
        installed = Path(str(importlib.metadata.distribution(name).locate_file(name)))
        (folder / "spark" / name).symlink_to(installed)
    return folder


def _run(environment: Path, folder: Path, *words: str) -> str:
    paths = f"{ROOT / 'python'}{os.pathsep}{environment / 'spark'}"
    variables = {**os.environ, "PYTHONPATH": paths, "DO_NOT_TRACK": "1"}
    program, *arguments = words
    command = [str(environment / "venv/bin" / program), *arguments]
    run = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return str(run.stdout)


@pytest.mark.slow
def test_a_sqlmesh_model_gets_a_hint(environment: Path, tmp_path: Path) -> None:
    program = f"{PROGRAMS}\nprint(render_with_hint(MODEL).sql(dialect='spark'))"
    last = _run(environment, tmp_path, "python", "-c", program).splitlines()[-1]
    assert last.startswith("SELECT /*+ PARALLELISM(8) */ city AS city, SUM(price) AS total FROM")


@pytest.mark.slow
def test_compiled_dbt_models_get_a_hint(environment: Path, tmp_path: Path) -> None:
    for name, text in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    offline = ("--no-introspect", "--no-populate-cache", "--profiles-dir", ".")
    _run(environment, tmp_path, "dbt", "compile", *offline)
    _run(environment, tmp_path, "python", "-c", PROGRAMS)
    compiled = tmp_path / "target/compiled/shop/models/totals.sql"
    assert compiled.read_text() == (
        "select /*+ PARALLELISM(4, 64) */ city, sum(price) as total from shop.orders group by city"
    )


@pytest.mark.slow
@pytest.mark.parametrize("words", [("sqlmesh", "--help"), ("dbt", "--version")])
def test_the_tools_start_beside_apportion(
    environment: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert _run(environment, tmp_path, *words)

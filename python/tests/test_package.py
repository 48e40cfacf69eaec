"""The names of `import apportion`."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_subpackages_need_no_import_of_their_own() -> None:
    code = """
import sys, apportion
assert not {"apportion.hints", "apportion.eventlog", "apportion.keys"} & sys.modules.keys()
print(apportion.hints.lint("SELECT /*+ PARALELISM(8) */ 1")[0].code)
print(apportion.eventlog.read.__name__)
print(apportion.keys.spread.__name__)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("APH201\nread\nspread\n", "")


def test_packages_that_modules_import_are_declared() -> None:
    distributions = importlib.metadata.packages_distributions()
    imported = {name for file in (ROOT / "python/apportion").rglob("*.py") for name in _names(file)}
    used = {each.lower() for name in imported for each in distributions[name]}
    metadata, _, _ = (ROOT / "pyproject.toml").read_text("utf-8").partition("[project.scripts]")
    assert len(used) > 5
    assert used <= set(re.findall(r'"([a-z0-9-]+)(?:\[\w+\])?[<>=]', metadata))


def _names(file: Path) -> Iterator[str]:
    """Yield the packages that a file needs to be imported, but not Apportion and Python's own."""
    for statement in ast.parse(file.read_text("utf-8")).body:
        match statement:
            case ast.Import(names=aliases):
                modules = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module)):
                modules = [module]
            case _:
                continue
        names = {module.split(".")[0] for module in modules}
        yield from names - sys.stdlib_module_names - {"apportion"}

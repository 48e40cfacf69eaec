"""The names of `import apportion`."""

from __future__ import annotations

import subprocess
import sys


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

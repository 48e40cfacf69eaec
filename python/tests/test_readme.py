"""The README's Python, run as it stands. All else of it is tested as other pages are, in docs/."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_python_examples_of_the_readme_run_as_one_program(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 2
    program = tmp_path / "example.py"
    program.write_text("\n".join(examples), "utf-8")
    run = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert re.search(r"\d+ tasks read \d+ shuffle partitions\n\d+ tasks: .*\.\n", run.stdout)

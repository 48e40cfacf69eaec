"""Mutated policy files: only Apportion's own errors, in bounded time."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from apportion.policies import PolicyError, check, load

from .test_rules import GOLDEN, RULES

PIECES = [
    *"[]{}:,-&*!|>'\"%@`#?~<=\n\t\\()+^$.0123456789aeEnNyxu\x00\x85\u2028\ufeff\U0001f600",
    "!!int ", "!!bool ", "!!str ", "&a ", "*a", "<<: ", "? ", "---\n", "...", "%YAML 9.9\n", "null",
    "true", ".nan", ".inf", "1e999", "9" * 5000, "0x", "[" * 400, "{a: " * 400, "\\ud800", "\\x",
    "(?", "(?i)", "{1,99999999999}", "(" * 300, "[a-", "*/", "/*", "RANGES(", "PARALLELISM(8)",
    "rules:", "match:", "settings:", "blocks:", "sql: ", "parallelism: ", "dataVolumePerTask: ",
]  # fmt: skip


def mutated(text: str, draw: random.Random) -> str:
    for _ in range(draw.randint(1, 3)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice([0, 0, 1, 2, 10]))
        piece = draw.choice([*PIECES, text[start : start + 30]])
        text = text[:start] + piece + text[end:]
    return text


def try_mutations(number: int, folder: Path) -> int:
    """Check mutated files, and return how many have no problems."""
    draw = random.Random(number)
    texts = [case["file"] for case in GOLDEN["files"] if len(case["file"]) < 1000]
    originals = [("a.yaml", text) for text in texts]
    originals += [("a.yaml", RULES.to_yaml()), ("a.json", RULES.to_json())] * len(texts)
    accepted = 0
    for _ in range(number):
        name, text = draw.choice(originals)
        text = mutated(text, draw)
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        start = time.process_time()
        if is_accepted(folder / name):
            again = folder / "saved.yaml"
            load(folder / name).save(again)
            assert load(again) == load(folder / name), text
            accepted += 1
        assert time.process_time() - start < 2, text
    return accepted


def is_accepted(path: Path) -> bool:
    try:
        return not any(problem.is_certain for problem in check(path))
    except PolicyError:
        return False


def test_mutated_files_raise_only_policy_errors(tmp_path: Path) -> None:
    assert try_mutations(400, tmp_path) > 10


@pytest.mark.slow
def test_ten_thousand_mutated_files_raise_only_policy_errors(tmp_path: Path) -> None:
    assert try_mutations(10_000, tmp_path) > 200

"""Seeded changes of what others write: values of JSON, bytes and lines."""

from __future__ import annotations

import copy
import resource
import time
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import pytest

HOSTILE: list[Any] = [
    None, -1, 0, 1, 10**30, -(10**9), 2**62, 2**63 - 1, 1.5, float("inf"), float("nan"), True,
    "", "x" * 50, "\x1b[31m\x9b\x07", "\ud800", "2", [], {}, [[]], [1], [None], {"x": []},
]  # fmt: skip
_MOST_SECONDS = 5.0
_MOST_GROWTH = 512 << 20

# Some hundred mutations always, and many more on request.
SEEDS = pytest.mark.parametrize(
    "seeds",
    [range(200), pytest.param(range(200, 10_200), marks=pytest.mark.slow)],
    ids=["quick", "many"],
)


def bounded(seeds: Iterable[int]) -> Iterator[Random]:
    """Yield a source of randomness for each seed. The time of each and the memory are bounded."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in seeds:
        start = time.process_time()
        yield Random(seed)
        assert time.process_time() - start < _MOST_SECONDS, f"seed {seed} took too long"
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
    assert growth < _MOST_GROWTH, f"the memory grew by {growth >> 20} MiB"


def with_other_values(draw: Random, value: Any, changes: int = 3) -> Any:
    """Return a copy of a value for JSON, in which some values are replaced or missing."""
    made = copy.deepcopy(value)
    for _ in range(changes):
        container = made
        while isinstance(container, dict | list) and container:
            key = draw.choice(
                list(container) if isinstance(container, dict) else range(len(container))
            )
            if not isinstance(container[key], dict | list) or draw.random() < 0.15:
                if draw.random() < 0.2:
                    del container[key]
                else:
                    container[key] = copy.deepcopy(draw.choice(HOSTILE))
                break
            container = container[key]
    return made


def with_other_bytes(draw: Random, content: bytes) -> bytes:
    """Return bytes of which some are changed, moved, repeated, cut or left out."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(content) + 1)
        end = min(len(content), start + draw.choice([1, 4, 100, len(content)]))
        part = content[start:end]
        other = draw.choice([
            draw.randbytes(len(part) % 50 + 1), b"", part * 2, part[::-1], b"\0" * 4, b"\xff" * 4,
            b"[" * 3000, b'{"a":' * 3000, b"9" * 400,
        ])  # fmt: skip
        content = content[:start] + other + content[end:]
    return content


def with_other_pieces(draw: Random, pieces: list[Any]) -> list[Any]:
    """Return pieces in nearly the same order, of which some are moved, repeated or left out."""
    made = list(pieces)
    for _ in range(draw.randint(1, 3)):
        piece = made.pop(draw.randrange(len(made))) if made else pieces[0]
        for _ in range(draw.randint(0, 2)):
            made.insert(draw.randrange(len(made) + 1), piece)
    return made

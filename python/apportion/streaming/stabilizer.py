"""When a stream is changed: after the load was steady, and not too soon after the last change."""

from __future__ import annotations

from collections import deque

from apportion.errors import InputError
from apportion.streaming.policies import Wanted


class Stabilizer:
    """Turns the wishes of a policy into few changes.

    The stream grows to the smallest number that was wanted during `stabilization`, and shrinks to
    the largest, so that one peak or gap changes nothing. Times are seconds.
    """

    def __init__(self, stabilization: float, cooldown: float) -> None:
        for name, value in (("stabilization", stabilization), ("cooldown", cooldown)):
            if not 0 <= value <= 86_400:
                raise InputError(f"{name} is {value!r}: allowed is a number from 0 to 86400")
        self._stabilization = stabilization
        self._cooldown = cooldown
        self._wishes: deque[tuple[float, Wanted]] = deque()
        self._changed: float | None = None

    def changed(self, now: float) -> None:
        """Note that the stream was changed, or that a change failed."""
        self._changed = now
        self._wishes.clear()

    def steady(self, now: float, partitions: int, wanted: Wanted) -> Wanted | None:
        """Return the change to make now, with the reason of the last wish, or None."""
        direction = _sign(wanted.partitions - partitions)
        if self._wishes and direction != _sign(self._wishes[-1][1].partitions - partitions):
            self._wishes.clear()
        self._wishes.append((now, wanted))
        # One wish before the window stays: it says what was wanted when the window began.
        while len(self._wishes) > 1 and self._wishes[1][0] <= now - self._stabilization:
            self._wishes.popleft()
        waited = now - self._wishes[0][0]
        is_cooling = self._changed is not None and now - self._changed < self._cooldown
        if direction == 0 or is_cooling or waited < self._stabilization:
            return None
        numbers = [wish.partitions for _, wish in self._wishes]
        target = min(numbers) if direction > 0 else max(numbers)
        return Wanted(target, wanted.reason)


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)

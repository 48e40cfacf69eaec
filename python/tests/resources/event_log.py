"""What the event log of a driver says about its tasks and executors."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any


class EventLog:
    """The only event log in a directory, read again for each question."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of this kind."""
        (log,) = self._directory.iterdir()
        lines = log.read_text().splitlines()
        found = (json.loads(line) for line in lines if line.startswith(f'{{"Event":"{name}"'))
        return [event for event in found if event["Event"] == name]

    def tasks(self) -> Counter[int]:
        """Return the number of tasks that succeeded, by stage."""
        ended = self.events("SparkListenerTaskEnd")
        return Counter(
            event["Stage ID"] for event in ended if event["Task End Reason"]["Reason"] == "Success"
        )

    def attempts(self) -> Counter[int]:
        """Return the number of attempts of each stage that was submitted."""
        submitted = self.events("SparkListenerStageSubmitted")
        return Counter(event["Stage Info"]["Stage ID"] for event in submitted)

"""Views of streams: their load over time, their state partitions and their rescales."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from apportion._util.units import count_text, seconds_text, size_text
from apportion.logs.stream_record import StreamRecord

_BATCH = "batch"


@dataclasses.dataclass(frozen=True)
class StreamView:
    """A stream that Apportion controlled. `records` has at least one, oldest first."""

    records: Sequence[StreamRecord]

    @property
    def title(self) -> str:
        """The name, with the start of the id."""
        name, start = self.records[-1].stream, self.records[0].query_id[:8]
        return name if start in name else f"{name} ({start})"

    @property
    def batches(self) -> list[StreamRecord]:
        """The batches of the log, oldest first."""
        return [record for record in self.records if record.event == _BATCH]

    @property
    def changes(self) -> list[StreamRecord]:
        """Rescales, failures and ends, oldest first."""
        return [record for record in self.records if record.event != _BATCH]

    @property
    def trigger_millis(self) -> int | None:
        """The last interval of the trigger."""
        return self.records[-1].trigger_millis

    @property
    def summary(self) -> list[str]:
        """Sentences about the policy, the load and the state."""
        newest = self.records[-1]
        rescales = sum(record.event == "rescale" for record in self.records)
        lines = [
            f"Policy {newest.policy}: {count_text(newest.partitions, 'state partition')}, "
            f"target {newest.target}, {count_text(newest.slots, 'task slot')}, "
            f"{count_text(rescales, 'rescale')}."
        ]
        if batches := self.batches:
            lines.append(self._load(batches))
            last = batches[-1]
            backlogs = [each.backlog_rows for each in batches if each.backlog_rows is not None]
            backlog = f"up to {max(backlogs):,} rows" if backlogs else "unknown"
            size = size_text(last.state_bytes)
            lines.append(f"State: {last.state_rows:,} rows, {size}. Backlog: {backlog}.")
        return lines

    def _load(self, batches: Sequence[StreamRecord]) -> str:
        longest = max(batch.batch_millis for batch in batches)
        # The plural of a batch is irregular for `count_text`.
        number = "1 batch" if len(batches) == 1 else f"{len(batches)} batches"
        text = f"{number}, up to {seconds_text(longest / 1000)} each"
        if self.trigger_millis is None:
            return f"{text}; the trigger has no interval."
        above = sum(batch.batch_millis > self.trigger_millis for batch in batches)
        interval = seconds_text(self.trigger_millis / 1000)
        return f"{text}; {above} took longer than the trigger's interval of {interval}."


def pause_text(record: StreamRecord) -> str:
    """Return the pause of a rescale and its parts, or '' for another record."""
    if record.pause_millis is None:
        return ""
    parts = {
        "stop": record.stop_millis,
        "repartition": record.repartition_millis,
        "start": record.start_millis,
    }
    named = [f"{name} {seconds_text(ms / 1000)}" for name, ms in parts.items() if ms is not None]
    return f"paused {seconds_text(record.pause_millis / 1000)} ({', '.join(named)})"


def time_text(record: StreamRecord) -> str:
    """Return the time of a record in UTC."""
    return f"{record.at:%Y-%m-%d %H:%M:%S}"

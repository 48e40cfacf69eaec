"""Quantities in pages that are not measured: limits of the code, and definitions and examples."""

from __future__ import annotations

from typing import NamedTuple


class Limit(NamedTuple):
    """A quantity of a page, with the end of a source file's path and the text in this file."""

    page: str
    quantity: str
    file: str
    code: str


LIMITS = [
    Limit("adaptive-writes.md", "4 MiB", "writer/KeptRows.scala", "MaxBytes: Long = 4L << 20"),
    Limit("adaptive-writes.md", "8 KiB", "writer/RowBatches.scala", "MaxCapacity = 8 << 10"),
    Limit("adaptive-writes.md", "16 MiB", "writer/BlockSizes.scala", "MaxBytes = 16L << 20"),
    Limit("adaptive-writes.md", "8 times", "AdaptiveWrites.scala", "if (policy.balanced) 8L"),
    Limit("adaptive-writes.md", "32 KiB", "BlockChooser.scala", "LargePartition = 32L << 10"),
    Limit("adaptive-writes.md", "32 times", "decision/Policy.scala", "BlocksPerRequest = 32"),
    Limit("adaptive-writes.md", "32,768", "AdaptiveWrites.scala", "Max = 32768L"),
    Limit("adaptive-writes.md", "8,192", "AdaptiveWrites.scala", "MaxByBytes = 8192L"),
    Limit("advising.md", "256 MB", "advise/reading.py", "MAX_CACHE = 256 << 20"),
    Limit("advising.md", "200 ms", "rules/limits.py", "TINY_TASK_SECONDS = 0.2"),
    Limit("advising.md", "64 MiB", "rules/limits.py", "MIN_SPILLED = 64 << 20"),
    Limit("advising.md", "5 %", "rules/limits.py", "MIN_SPILLED_SHARE = 0.05"),
    Limit("advising.md", "10 %", "rules/limits.py", "MIN_SHARE = 0.1"),
    Limit("advising.md", "10 %", "rules/limits.py", "MIN_OUTSIDE_SHARE = 0.1"),
    Limit("advising.md", "10 %", "rules/limits.py", "RECORDED_SIZE = 1.1"),
    Limit("advising.md", "10 %", "report/comparison.py", "MORE_DATA = 1.1"),
    Limit("advising.md", "5 s", "rules/limits.py", "MIN_LOST_TASK_SECONDS = 5.0"),
    Limit("advising.md", "5 s", "rules/limits.py", "MIN_IDLE_SECONDS = 5.0"),
    Limit("advising.md", "5 s", "rules/limits.py", "MIN_SHUFFLE_TASK_SECONDS = 5.0"),
    Limit("advising.md", "2 %", "rules/limits.py", "MIN_WASTED_SHARE = 0.02"),
    Limit("advising.md", "three times", "rules/limits.py", "SKEW_RATIO = 3.0"),
    Limit("advising.md", "2 s", "rules/limits.py", "MIN_TAIL_SECONDS = 2.0"),
    Limit("advising.md", "20 %", "rules/limits.py", "MIN_TAIL_SHARE = 0.2"),
    Limit("advising.md", "16 MiB", "rules/limits.py", "SMALL_FILE = 16 << 20"),
    Limit("advising.md", "8 MiB", "rules/limits.py", "SMALL_SCAN_TASK = 8 << 20"),
    Limit("advising.md", "1 MiB", "rules/limits.py", "TINY_PARTITION = 1 << 20"),
    Limit("benchmarking.md", "2,000 times", "_util/ratios.py", "_RESAMPLES = 2000"),
    Limit("command-line.md", "5 %", "report/comparison.py", "SLOWER = 1.05"),
    Limit("command-line.md", "1 s", "report/comparison.py", "MIN_SECONDS = 1.0"),
    Limit("command-line.md", "10 %", "report/comparison.py", "MORE_DATA = 1.1"),
    Limit("command-line.md", "4 MiB", "suites/skew.py", 'advisoryPartitionSizeInBytes": "4MB"'),
    Limit("concepts.md", "1.1 times", "decision/Layout.scala", "LargerThanSparks = 1.1"),
    Limit("contributing.md", "1,000", "docs/outputs.py", "for i in range(1000)"),
    Limit("decisions.md", "1,000", "streams/StreamLog.scala", "MostRecords = 1000"),
    Limit("even-keys.md", "100,000", "keys/columns.py", "MOST_VALUES = 100_000"),
    Limit("history.md", "200 ms", "outcomes/MemoryNeed.scala", "MinTaskMillis = 200"),
    Limit("history.md", "200 ms", "history/History.scala", "MILLISECONDS.toNanos(200)"),
    Limit("history.md", "30 s", "history/History.scala", "SECONDS.toNanos(30)"),
    Limit("history.md", "eight times", "history/Run.scala", "MaxGrowth = 8.0"),
    Limit("memory.md", "32 bytes", "memory/RowHolders.scala", "Seq(Entry(0, 32))"),
    Limit("memory.md", "1.3 times", "memory/RowHolders.scala", "RowHolders(1.3, 16"),
    Limit("memory.md", "40 bytes", "memory/RowHolders.scala", "Seq(Entry(0, 40))"),
    Limit("memory.md", "5 %", "outcomes/MemoryNeed.scala", "Harmless = 0.05"),
    Limit("memory.md", "four times", "outcomes/MemoryNeed.scala", "AfterFailure = 4"),
    Limit("policies.md", "five s", "PolicyWatcher.scala", "SECONDS.toNanos(5)"),
    Limit("policies.md", "ten s", "PolicyWatcher.scala", "SECONDS.toNanos(10)"),
    Limit("should-i-use-it.md", "1.25 times", "decision/SkewSplits.scala", "Tolerance = 1.25"),
    Limit("simulating.md", "4.9 %", "plain_logs/undecided.py", "KNOWN_BYTES = 0.1 / math.log(1.1)"),
    Limit("simulating.md", "58 µs", "arithmetic/writes.py", "SECONDS_PER_FILE = 58e-6"),
    Limit("slots.md", "90 %", "deadlines/QueryRun.scala", "Aim = 0.9"),
    Limit("streams.md", "5 min", "apportion/streaming/__init__.py", 'str | float = "5min"'),
    Limit("streams.md", "10 min", "apportion/streaming/__init__.py", 'str | float = "10min"'),
    Limit("streams.md", "70 %", "streaming/policies.py", "_HEADROOM = 0.7"),
]  # fmt: skip

_SPARKS = "Spark's default"
_SCENARIO = "a value that the reader could choose"

EXAMPLES = {
    "adaptive-writes.md": {"80,000": "400 map tasks times 200 partitions"},
    "command-line.md": {
        "1 GB": "the definition of scale 1 of TPC-H",
        "16 MB": _SCENARIO,
        "1000 times": _SCENARIO,
    },
    "decisions.md": {"10 MiB": "a reason, to show its form"},
    "even-keys.md": {"64 MiB": _SPARKS},
    "files.md": {"128 MB": _SCENARIO, "1 GB": _SCENARIO},
    "hints.md": {"256 MiB": _SCENARIO, "30 %": _SCENARIO},
    "memory.md": {"60 %": _SPARKS},
    "settings.md": {"1 MB": "the definition of the unit"},
    "should-i-use-it.md": {
        "3 TB": "a number of another project, as the page says",
        "0.67 times": "the error of rounding to a power of two",
        "1.5 times": "the error of rounding to a power of two",
    },
    "slots.md": {"60 s": "a warning, to show its form", "95 s": "a warning, to show its form"},
    "slow-job.md": {"60 %": "a share of the rows that the query makes"},
    "testing.md": {"500 bytes": _SCENARIO},
    "troubleshooting.md": {"60 KiB": _SCENARIO},
    "tuning.md": {
        "ten fold": _SCENARIO, "32 MB": _SCENARIO, "128 MB": _SCENARIO, "256 MB": _SCENARIO,
        "64 MiB": _SPARKS,
    },
}  # fmt: skip

"""Processes that apply a function, and end with what started them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from apportion._util.parallel import in_processes

_PROGRAM = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from apportion._util.parallel import end_with_parent

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=end_with_parent) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600).result()
"""


def test_an_iterator_that_is_closed_ends_only_its_own_processes() -> None:
    commands = ["sleep 0.1; echo $PPID"] * 6
    first = in_processes(subprocess.getoutput, commands, "killed: {}".format, processes=2)
    next(first)
    second = in_processes(subprocess.getoutput, commands, "killed: {}".format, processes=2)
    its_processes = {next(second)}
    first.close()
    its_processes.update(second)
    assert len(its_processes) <= 2


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_of_a_pool_ends_if_the_main_process_is_killed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM)
    main = subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True)
    assert main.stdout
    worker = int(main.stdout.readline())
    assert _runs(worker)
    main.kill()
    main.communicate()
    for _ in range(100):
        if not _runs(worker):
            return
        time.sleep(0.1)
    raise AssertionError("the process of the pool still runs")

"""A standalone cluster on this machine, and a driver beside it."""

from __future__ import annotations

import itertools
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

import pyspark

from tests import programs

HOME = Path(pyspark.__file__).parent
PATIENCE = 120
"""Seconds after which something that has to happen has not."""


def eventually(what: str, found: Callable[[], Any]) -> Any:
    """Return what `found` returns as soon as that is true."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < end, f"not in {PATIENCE} seconds: {what}"
        time.sleep(0.2)
    return value


class ClusterManager(Protocol):
    """What drivers need to know of a cluster."""

    directory: Path

    @property
    def url(self) -> str: ...

    @property
    def conf(self) -> Mapping[str, str]: ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables of the driver's environment."""


class Cluster:
    """A master, and workers that come and go, of one core each unless set otherwise.

    `daemon_options` are options of the JVMs of the master and the workers.
    """

    conf: ClassVar[Mapping[str, str]] = {"spark.executor.extraJavaOptions": programs.quick_start()}
    environment: ClassVar[Mapping[str, str]] = {}

    def __init__(self, directory: Path, cores: int = 1, daemon_options: str = "") -> None:
        self.directory = directory
        self._cores = cores
        self._daemon_options = daemon_options
        self._workers: list[subprocess.Popen[bytes]] = []
        self._logs = itertools.count()
        self._master, log = self._start("Master", "--port", "0", "--webui-port", "0")
        started = eventually("a master", lambda: re.search(r"at (spark://\S+)", log.read_text()))
        self.url = started[1]

    @property
    def workers(self) -> int:
        return len(self._workers)

    def resize(self, workers: int) -> None:
        while self.workers < workers:
            self.add_worker()
        while self.workers > workers:
            self.kill_worker()

    def add_worker(self) -> None:
        size = "--cores", str(self._cores), "--memory", f"{700 * self._cores}m"
        options = *size, "--port", "0", "--webui-port", "0"
        number = next(self._logs)
        # Spark runs speculative copies of a task only on other hosts.
        host = f"127.0.0.{2 + number % 250}"
        work = self.directory / f"work-{number}"
        worker, log = self._start("Worker", *options, "--work-dir", str(work), self.url, host=host)
        self._workers.append(worker)
        eventually("a worker", lambda: "Successfully registered" in log.read_text())

    def kill_worker(self) -> None:
        """Kill the youngest worker and its executor, as a machine that goes away."""
        kill(self._workers.pop())

    def executor_of_youngest_worker(self) -> int:
        """Return the process id of the executor that this worker has started last.

        Executors of applications that have just ended may still be there.
        """
        command = "pgrep", "--newest", "--parent", str(self._workers[-1].pid)
        return int(subprocess.run(command, capture_output=True, check=True).stdout)

    def stop(self) -> None:
        for process in [*self._workers, self._master]:
            kill(process)

    def _start(
        self, name: str, *arguments: str, host: str = "127.0.0.1"
    ) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.directory / f"{name}-{next(self._logs)}.log"
        command = HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name.lower()}.{name}"
        environment = {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{programs.quick_start()} {self._daemon_options}",
        }
        # Executors are in the process's group, and die with it.
        process = programs.start(
            *command, "--host", host, *arguments, log=log, environment=environment
        )
        return process, log


class Driver:
    """A Spark program that takes calls, each of which can be waited for."""

    def __init__(self, conf: dict[str, str], log: Path, environment: Mapping[str, str]) -> None:
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {0: queue.Queue()}
        self._ids = itertools.count(1)
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("driver.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        assert self._process.stdout
        reader = threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True)
        reader.start()
        self._write(conf)
        self.wait(0)

    def begin(self, name: str, **arguments: Any) -> int:
        """Send a call, and return its number."""
        number = next(self._ids)
        self._answers[number] = queue.Queue()
        self._write({"id": number, "call": name, "arguments": arguments})
        return number

    def answer(self, number: int) -> dict[str, Any]:
        """Return the answer to a call."""
        return self._answers[number].get(timeout=PATIENCE)

    def wait(self, number: int) -> Any:
        """Return the value that a call has."""
        answer = self.answer(number)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def has_executors(self, count: int) -> None:
        """Wait until that is so."""
        eventually(f"{count} executors", lambda: self.call("executors") == count)

    def call(self, name: str, **arguments: Any) -> Any:
        return self.wait(self.begin(name, **arguments))

    def is_answered(self, number: int) -> bool:
        return not self._answers[number].empty()

    def ends(self) -> bool:
        """Whether the program ends when nobody tells it anything any more."""
        assert self._process.stdin
        self._process.stdin.close()
        return self._process.wait(PATIENCE) == 0

    def stop(self) -> None:
        kill(self._process)

    def _write(self, value: object) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def _read(self, output: IO[str]) -> None:
        for line in output:
            if line.startswith("answer "):
                answer = json.loads(line.removeprefix("answer "))
                self._answers[answer["id"]].put(answer)
        for waiting in list(self._answers.values()):
            waiting.put({"error": f"the driver has ended:\n{self._log.read_text()[-2000:]}"})


@contextmanager
def driver_of(cluster: ClusterManager, **settings: str) -> Iterator[Driver]:
    """A driver on the cluster's executors, with these settings (dots as `__`)."""
    conf = {
        "spark.master": cluster.url,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        # Executors are killed on purpose.
        "spark.stage.maxConsecutiveAttempts": "10",
        "spark.task.maxFailures": "10",
        **cluster.conf,
        **{f"spark.{name.replace('__', '.')}": value for name, value in settings.items()},
    }
    driver = Driver(conf, cluster.directory / "driver.log", cluster.environment)
    try:
        yield driver
    finally:
        driver.stop()


def kill(process: subprocess.Popen[Any]) -> None:
    """Kill a process and those of its group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()

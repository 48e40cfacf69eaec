"""Apache Celeborn on this machine: a master, workers, and Spark in local mode."""

from __future__ import annotations

import itertools
import re
import socket
import subprocess
from pathlib import Path

from tests import programs
from tests.resources.cluster import eventually, kill

_HOST = "127.0.0.1"
_PACKAGE = "org.apache.celeborn.service.deploy"
# Celeborn and Netty reach into classes of the JDK.
_OPENED = ("java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util")
_OPENED_TOO = ("java.util.concurrent", "jdk.internal.misc", "sun.nio.ch", "sun.nio.cs")


class Celeborn:
    """A master, and workers of a binary distribution.

    `home` has the folders `master-jars`, `worker-jars` and `spark` of the distribution.
    """

    url = "local[2]"

    def __init__(self, home: Path, directory: Path, workers: int = 2) -> None:
        self.directory = directory
        self.environment = {"CELEBORN_LOCAL_HOSTNAME": _HOST, "SPARK_LOCAL_IP": _HOST}
        self._home = home
        self._logs = itertools.count()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._master, log = self._start("master", "--port", "0")
        found = eventually(
            "a master", lambda: re.search(r"'Master' on port (\d+)", log.read_text())
        )
        self._endpoint = f"{_HOST}:{found[1]}"
        for _ in range(workers):
            self._add_worker()
        [client] = (home / "spark").glob("celeborn-client-spark-*.jar")
        self.conf = {
            "spark.driver.extraClassPath": str(client),
            "spark.shuffle.manager": "org.apache.spark.shuffle.celeborn.SparkShuffleManager",
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.celeborn.master.endpoints": self._endpoint,
            "spark.celeborn.client.spark.shuffle.fallback.policy": "NEVER",
            "spark.celeborn.client.push.replicate.enabled": "true",
        }

    def kill_worker(self) -> None:
        kill(self._workers.pop())

    def stop(self) -> None:
        for process in [*self._workers, self._master]:
            kill(process)

    def _add_worker(self) -> None:
        data = self.directory / f"data-{len(self._workers)}"
        data.mkdir()
        storage = f"-Dceleborn.worker.storage.dirs={data}:capacity=4G"
        process, log = self._start("worker", f"celeborn://{self._endpoint}", options=[storage])
        self._workers.append(process)
        eventually("a worker", lambda: "Register worker successfully" in log.read_text())

    def _start(
        self, role: str, *arguments: str, options: list[str] | None = None
    ) -> tuple[subprocess.Popen[bytes], Path]:
        log = self.directory / f"{role}-{next(self._logs)}.log"
        opened = [f"--add-opens=java.base/{each}=ALL-UNNAMED" for each in (*_OPENED, *_OPENED_TOO)]
        conf = {
            "celeborn.master.host": _HOST,
            f"celeborn.{role}.http.host": _HOST,
            f"celeborn.{role}.http.port": str(_free_port()),
            "celeborn.network.bind.preferIpAddress": "true",
            "celeborn.worker.storage.disk.reserve.size": "100m",
        }
        settings = [f"-D{key}={value}" for key, value in conf.items()]
        classes = "-cp", f"{self._home}/{role}-jars/*", f"{_PACKAGE}.{role}.{role.capitalize()}"
        memory = "-Xmx512m", "-XX:MaxDirectMemorySize=512m"
        process = programs.start(
            *("java", *memory, *opened, "-Dio.netty.tryReflectionSetAccessible=true"),
            "-Dorg.apache.logging.log4j.level=INFO",
            *(*settings, *(options or []), *classes, "--host", _HOST, *arguments),
            log=log,
            folder=self.directory,
            environment=self.environment,
        )
        return process, log


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((_HOST, 0))
        return int(found.getsockname()[1])

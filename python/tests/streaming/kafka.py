"""A Kafka broker for tests: one process, with the artifacts from Maven."""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.maven import jars

# Spark's connector has its own, older client. The broker runs in another process.
BROKER = "org.apache.kafka:kafka_2.13:4.1.0"
CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"

_SECONDS = 60
# Spark has all other dependencies of its connector.
_ADDED_TO_SPARK = ("kafka", "commons-pool2")

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={folder}
num.partitions=3
offsets.topic.replication.factor=1
"""


def connector() -> str:
    """Return the value of `spark.jars` for Kafka sources."""
    found = sorted(jars(CONNECTOR).glob("*.jar"))
    return ",".join(str(jar) for jar in found if any(name in jar.name for name in _ADDED_TO_SPARK))


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Start a broker with its files in `folder`, yield its address, and stop it."""
    ports = {"broker": _free_port(), "controller": _free_port()}
    folder.mkdir()
    properties = folder / "server.properties"
    properties.write_text(_PROPERTIES.format(folder=folder / "data", **ports), "utf-8")
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars(BROKER)}/*"]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    format_disk = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)]
    subprocess.run([*java, *format_disk], capture_output=True, check=True)
    with (folder / "log").open("wb") as log:
        command = [*java, "kafka.Kafka", str(properties)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait(process, ports["broker"], folder / "log")
        yield f"127.0.0.1:{ports['broker']}"
    finally:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(_SECONDS * 10):
        assert process.poll() is None, log.read_text("utf-8")
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"the broker did not start:\n{log.read_text('utf-8')}")

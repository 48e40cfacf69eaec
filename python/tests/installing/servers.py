"""Servers, started with the commands of docs/deploying.md."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from apportion._spark import jars

from .commands import options

_SECONDS_TO_START = 180


@contextlib.contextmanager
def running(main_class: str, port_setting: str, folder: Path, *confs: str) -> Iterator[int]:
    """Start the page's server of a class, and yield its port; it works in `folder`."""
    port, log = _free_port(), folder / "server.log"
    submit = [str(jars.spark_home() / "bin" / "spark-submit"), "--conf", f"{port_setting}={port}"]
    submit += [word for conf in confs for word in ("--conf", conf)]
    with log.open("w") as output:
        server = subprocess.Popen(
            [*submit, *options(jars.find(), "spark-submit", main_class)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait(server, port, log)
        yield port
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        port: int = found.getsockname()[1]
        return port


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _SECONDS_TO_START
    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError):
            socket.create_connection(("localhost", port), 1).close()
            return
        time.sleep(0.2)
    raise AssertionError(f"the server does not answer:\n{log.read_text('utf-8')}")

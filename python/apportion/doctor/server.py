"""A Spark Connect server."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from apportion.errors import ApportionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PORT = 15002
_SECONDS_TO_ANSWER = 10


def address(url: str) -> tuple[str, int]:
    """Return the host and port of a server; raises `ApportionError` if `url` is none of one."""
    wrong = ApportionError(f"{url} is no Spark Connect server: write sc://HOST or sc://HOST:PORT")
    try:
        # Parameters of the client may stand behind the host, as in sc://host:15002/;token=...
        parts = urlparse(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme != "sc" or not host:
        raise wrong
    return host, port or _PORT


def connect(url: str) -> SparkSession:
    """Return a client's session; raises `ApportionError` if the server does not answer."""
    try:
        # Spark's own client would try for minutes.
        socket.create_connection(address(url), _SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise ApportionError(f"nothing answers there: {error}") from error
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.builder.remote(url).getOrCreate()
    except (PySparkException, ImportError) as error:
        raise ApportionError(str(error)) from error

"""Connection to a Spark Connect server."""

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
    """Return the host and port of a server.

    Raises `ApportionError` if `url` is not a Spark Connect URL.
    """
    wrong = ApportionError(f"{url} is not a Spark Connect URL: write sc://HOST or sc://HOST:PORT")
    try:
        # The URL can have client parameters after the host, such as sc://host:15002/;token=...
        parts = urlparse(url)
        host, port = parts.hostname, parts.port
        # As for the connection, which does not take a host such as a..b.
        (host or "").encode("idna")
    except ValueError:
        raise wrong from None
    if parts.scheme != "sc" or not host:
        raise wrong
    return host, port or _PORT


def connect(url: str) -> SparkSession:
    """Return a client session.

    Raises `ApportionError` if the server does not answer.
    """
    try:
        # Fail early: Spark's own client retries for minutes.
        socket.create_connection(address(url), _SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise ApportionError(f"the server does not answer: {error}") from error
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        # A server of another protocol takes connections too.
        _await_grpc(url)
        return SparkSession.builder.remote(url).getOrCreate()
    except (PySparkException, ImportError) as error:
        raise ApportionError(str(error)) from error


def _await_grpc(url: str) -> None:
    from pyspark.sql.connect import client

    # Only now: without it, Spark's client raises an error that names all missing packages.
    import grpc  # type: ignore[import-untyped]  # isort: skip

    # Spark 3.5 has one class, which later versions divide.
    name = "DefaultChannelBuilder" if hasattr(client, "DefaultChannelBuilder") else "ChannelBuilder"
    channel = getattr(client, name)(url).toChannel()
    try:
        grpc.channel_ready_future(channel).result(_SECONDS_TO_ANSWER)
    except grpc.FutureTimeoutError:
        raise ApportionError("the server does not answer as a Spark Connect server") from None
    finally:
        channel.close()

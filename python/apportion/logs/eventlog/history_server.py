"""Client for the REST API of Spark's UI and history server."""

from __future__ import annotations

import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from lzma import LZMAError
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import urlopen

from apportion._util.units import size_text
from apportion.errors import ApportionError
from apportion.logs.eventlog.input import deep_json
from apportion.logs.eventlog.input.deep_json import TooDeepError
from apportion.redaction import printable

_TIMEOUT_SECONDS = 30.0
_MAX_LISTED = 5
_PIECE = 1 << 20
_LONGEST_REASON = 200
# The list of all applications is the largest answer. An application has less than 1 KiB.
_MAX_JSON = 64 << 20
# What `zipfile` raises for a damaged, encrypted or unknown entry, and for a name that a file system
# does not allow.
_UNPACKING_ERRORS = (
    zipfile.BadZipFile, zlib.error, LZMAError, struct.error,
    EOFError, NotImplementedError, OSError, RuntimeError, ValueError,
)  # fmt: skip
_HISTORY = re.compile(r"/history/(?P<id>[^/]+)(/(?P<attempt>\d+)(?=/|$))?")


class RunningApplication(NamedTuple):
    """A running application. Its UI does not serve the event log."""

    id: str
    url: str
    conf: dict[str, str]


class _NotFoundError(Exception):
    """The server answered, but does not have the requested resource."""


@contextmanager
def application(url: str) -> Iterator[Path | RunningApplication]:
    """Yield a temporary directory with the event log of an application from a history server.

    Yield the running application instead if the server has no log to download. `url` is any page of
    the application, also behind a proxy. The root of a history server works if the server has only
    one application.

    Raises `ApportionError` if no Spark server answers, or if several applications are possible.
    """
    base, listed = _find_api(url)
    api, id = _choose(url, base, listed)
    with tempfile.TemporaryDirectory(prefix="apportion-") as directory:
        if _download(f"{api}/logs", Path(directory)):
            yield Path(directory)
            return
    yield RunningApplication(id, base, _conf(api))


def _find_api(url: str) -> tuple[str, list[Any]]:
    """Return the address that the API is below, and the applications that the API lists."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ApportionError(f"{url} is not a URL ({error}): write http://HOST:PORT") from None
    if not parts.netloc:
        raise ApportionError(f"{url} has no host: write http://HOST:PORT")
    root = f"{parts.scheme}://{parts.netloc}"
    path = _HISTORY.split(parts.path)[0].rstrip("/")
    while True:
        try:
            listed = _json(f"{root}{path}/api/v1/applications")
            if isinstance(listed, list) and all(map(_is_application, listed)):
                return root + path, listed
        except _NotFoundError:
            pass
        if not path:
            raise ApportionError(
                f"there is no Spark UI or history server at {url}: {root}/api/v1/applications does "
                "not list applications"
            )
        path = path.rpartition("/")[0]


def _choose(url: str, base: str, listed: list[Any]) -> tuple[str, str]:
    """Return the address of the application's latest or named attempt in the API, and its id."""
    api = f"{base}/api/v1/applications"
    if named := _HISTORY.search(urlsplit(url).path):
        chosen = _get_application(api, unquote(named["id"]))
    elif len(listed) == 1:
        [chosen] = listed
    elif not listed:
        raise ApportionError(f"{base} has no applications yet")
    else:
        newest = ", ".join(entry["id"] for entry in listed[:_MAX_LISTED])
        raise ApportionError(
            f"{base} has {len(listed)} applications: choose one with {base}/history/ID. "
            f"Newest: {newest}"
        )
    id = printable(chosen["id"])
    # The latest attempt comes first. Attempts have ids only if there can be several.
    attempt = (named and named["attempt"]) or chosen["attempts"][0].get("attemptId")
    suffix = f"/{quote(printable(str(attempt)), safe='')}" if attempt else ""
    return f"{api}/{quote(id, safe='')}{suffix}", id


def _get_application(api: str, id: str) -> Any:
    try:
        answer = _json(f"{api}/{quote(id, safe='')}")
    except _NotFoundError:
        answer = None
    if not _is_application(answer):
        raise ApportionError(f"{api} has no application {id}")
    return answer


def _is_application(answer: Any) -> bool:
    if not isinstance(answer, dict) or not isinstance(answer.get("id"), str):
        return False
    attempts = answer.get("attempts")
    return isinstance(attempts, list) and bool(attempts) and isinstance(attempts[0], dict)


def _download(url: str, directory: Path) -> bool:
    """Download and unpack an archive of logs. Return whether there were any logs."""
    # The archive and its unpacked files are on the same disk, next to files of other programs.
    limit = shutil.disk_usage(directory).free // 2
    too_large = (
        f"{url} has more than {size_text(limit)}, which is half of the free space in "
        f"{directory.parent}: set TMPDIR to a folder with more free space"
    )
    with tempfile.TemporaryFile(dir=directory.parent) as archive:
        try:
            with _open(url) as answer:
                while piece := answer.read(_PIECE):
                    limit -= len(piece)
                    if limit < 0:
                        raise ApportionError(too_large)
                    archive.write(piece)
        except _NotFoundError:
            return False
        # The UI of a running application answers with a page.
        if not zipfile.is_zipfile(archive):
            return False
        try:
            with zipfile.ZipFile(archive) as files:
                # No more bytes are unpacked than an archive declares.
                if sum(entry.file_size for entry in files.infolist()) > limit:
                    raise ApportionError(too_large)
                files.extractall(directory)
        except _UNPACKING_ERRORS as error:
            reason = str(getattr(error, "strerror", None) or error)[:_LONGEST_REASON]
            raise ApportionError(
                f"the archive at {url} cannot be unpacked: {reason}. Try again, or give the path "
                "of the event log"
            ) from None
    return any(directory.iterdir())


def _conf(api: str) -> dict[str, str]:
    try:
        properties = _json(f"{api}/environment")["sparkProperties"]
        return {printable(str(key)): printable(str(value)) for key, value in properties}
    except (_NotFoundError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise ApportionError(f"{api} does not report the path of its event log: {error}") from None


def _json(url: str) -> Any:
    with _open(url) as answer:
        content = answer.read(_MAX_JSON + 1)
        if len(content) > _MAX_JSON:
            raise ApportionError(
                f"{url} has more than {size_text(_MAX_JSON)}, which is the maximum: give the path "
                "of the event log"
            )
        try:
            return deep_json.loads(content)
        except (ValueError, TooDeepError):
            raise _NotFoundError("the answer is not JSON") from None


@contextmanager
def _open(url: str) -> Iterator[IO[bytes]]:
    try:
        with urlopen(url, timeout=_TIMEOUT_SECONDS) as answer:
            yield answer
    except HTTPError as error:
        with error:
            if error.code in (401, 403):
                raise ApportionError(
                    f"{url} requires a login ({error.code} {error.reason}): give the path of the "
                    "event log, or an address without login"
                ) from None
            raise _NotFoundError(f"{error.code} {error.reason}") from None
    except URLError as error:
        raise ApportionError(f"{url} does not answer: {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise ApportionError(f"{url} does not answer: {error}") from None

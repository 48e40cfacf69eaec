"""What the UI of an application and the history server tell of applications, over HTTP."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit
from urllib.request import urlopen

from apportion.errors import ApportionError

_SECONDS = 30.0
_MOST_LISTED = 5
_HISTORY = re.compile(r"/history/(?P<id>[^/]+)(/(?P<attempt>\d+)(?=/|$))?")


class RunningApplication(NamedTuple):
    """An application whose UI serves no event log, as its own UI does not."""

    id: str
    url: str
    conf: dict[str, str]


class _NotThereError(Exception):
    """An address that answers, but not with what was asked for."""


@contextmanager
def application(url: str) -> Iterator[Path | RunningApplication]:
    """Give the directory of the event log that is downloaded from a history server, for the block.

    Where there is none to download, give the application that runs. `url` is any page of the
    application, also behind a proxy; the root of a history server does if it knows one application
    only.

    Raises `ApportionError` where nothing answers as Spark does, or it is not clear which
    application is meant.
    """
    base, listed = _find_api(url)
    api, number = _choose(url, base, listed)
    with tempfile.TemporaryDirectory(prefix="apportion-") as directory:
        if _download(f"{api}/logs", Path(directory)):
            yield Path(directory)
            return
    yield RunningApplication(number, base, _conf(api))


def _find_api(url: str) -> tuple[str, list[Any]]:
    """Find what the path is below, and the applications that are listed there."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ApportionError(f"{url} is no URL ({error}): write http://HOST:PORT") from None
    if not parts.netloc:
        raise ApportionError(f"{url} names no host: write http://HOST:PORT")
    root = f"{parts.scheme}://{parts.netloc}"
    path = _HISTORY.split(parts.path)[0].rstrip("/")
    while True:
        try:
            listed = _json(f"{root}{path}/api/v1/applications")
            if isinstance(listed, list) and all(map(_is_application, listed)):
                return root + path, listed
        except _NotThereError:
            pass
        if not path:
            raise ApportionError(
                f"there is no Spark UI or history server at {url}: {root}/api/v1/applications does "
                "not list applications"
            )
        path = path.rpartition("/")[0]


def _choose(url: str, base: str, listed: list[Any]) -> tuple[str, str]:
    """Return the address of the application in the API, with its attempt, and its id."""
    api = f"{base}/api/v1/applications"
    if named := _HISTORY.search(urlsplit(url).path):
        number = unquote(named["id"])
        found = _named(api, number)
    elif len(listed) == 1:
        [found] = listed
    elif not listed:
        raise ApportionError(f"{base} has no application yet")
    else:
        newest = ", ".join(str(each["id"]) for each in listed[:_MOST_LISTED])
        raise ApportionError(
            f"{base} has {len(listed)} applications: name one as {base}/history/ID. "
            f"The newest: {newest}"
        )
    number = str(found["id"])
    # The latest attempt comes first, and has a number where there can be several.
    attempt = (named and named["attempt"]) or found["attempts"][0].get("attemptId")
    suffix = f"/{quote(str(attempt), safe='')}" if attempt else ""
    return f"{api}/{quote(number, safe='')}{suffix}", number


def _named(api: str, number: str) -> Any:
    try:
        found = _json(f"{api}/{quote(number, safe='')}")
    except _NotThereError:
        found = None
    if not _is_application(found):
        raise ApportionError(f"{api} has no application {number}")
    return found


def _is_application(found: Any) -> bool:
    return isinstance(found, dict) and bool(found.get("id") and found.get("attempts"))


def _download(url: str, directory: Path) -> bool:
    """Unpack the logs at an address; return whether there were any."""
    with tempfile.TemporaryFile() as packed:
        try:
            with _open(url) as answer:
                shutil.copyfileobj(answer, packed)
            with zipfile.ZipFile(packed) as files:
                files.extractall(directory)
        except (_NotThereError, zipfile.BadZipFile):
            return False
    return any(directory.iterdir())


def _conf(api: str) -> dict[str, str]:
    try:
        properties = _json(f"{api}/environment")["sparkProperties"]
        return {str(key): str(value) for key, value in properties}
    except (_NotThereError, LookupError, TypeError, ValueError) as error:
        raise ApportionError(f"{api} does not tell where its event log is: {error}") from None


def _json(url: str) -> Any:
    with _open(url) as answer:
        try:
            return json.loads(answer.read())
        except ValueError:
            raise _NotThereError("the answer is no JSON") from None


@contextmanager
def _open(url: str) -> Iterator[IO[bytes]]:
    try:
        with urlopen(url, timeout=_SECONDS) as answer:
            yield answer
    except HTTPError as error:
        with error:
            if error.code in (401, 403):
                raise ApportionError(
                    f"{url} asks who you are ({error.code} {error.reason}): give the event log's "
                    "path, or an address that does not"
                ) from None
            raise _NotThereError(f"{error.code} {error.reason}") from None
    except URLError as error:
        raise ApportionError(f"{url} does not answer: {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise ApportionError(f"{url} does not answer: {error}") from None

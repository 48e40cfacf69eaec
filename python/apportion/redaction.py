"""Removes secrets and control characters from text that is shown or saved."""

from __future__ import annotations

import re

HIDDEN = "*********(redacted)"
"""Text that Spark shows in place of a secret."""
REDACTION = "spark.redaction.regex"
# Default of spark.redaction.regex, with the names that later versions of Spark added, keys of Azure
# accounts and the short name of a password, which no version has.
_SECRET = r"secret|password|pwd|token|(?:access|account|api)[.]?key|credential|passphrase"
_SECRET_KEY = re.compile(f"(?i){_SECRET}")
# Bounded, so that the time is linear in the length of a text.
_NAME = rf"[\w.-]{{0,200}}(?:{_SECRET})[\w.-]{{0,200}}"
_ASSIGNED = [
    re.compile(f"(?i)({name})(?!{re.escape(HIDDEN)}){value}")
    for name, value in (
        # An option, such as -Djavax.net.ssl.trustStorePassword=x and --password x.
        (rf"(?<![\w-])--?{_NAME}(?:=|\s+(?!-))", r"""(?:"[^"]*"|'[^']*'|[^\s'"]+)"""),
        # A parameter of a JDBC URL or of a list, and the signature in the URL of an Azure file.
        (rf"(?:^|[?&;])(?:{_NAME}|sig)=", r"[^\s&;]+"),
        (rf"\b(?:spark|fs)\.{_NAME}\s*=\s*", r"[^\s,;()]+"),
        # A colon follows only a name that ends in a secret: `token.sql: no such file` has none.
        (rf"\b[\w-]{{1,200}}\.[\w.-]{{0,200}}(?:{_SECRET})\s*:\s+", r"[^\s,;()]+"),
        (r"\b(?:secret|access|account|api)[.]key\s*[:=]\s*", r"[^\s,;()]+"),
    )
]
_USER = re.compile(r"(?<=://)[^/\s@]*@")
# Parameters of a Spark Connect URL, such as sc://host:15002/;token=abc;user_id=me.
_PARAMETERS = re.compile(r"(sc://[^\s/;]+/?;)[^\s'\"]*")
# Control characters could be commands to a terminal. Consoles cannot print lone surrogates.
_UNPRINTABLE = dict.fromkeys(
    [*range(9), *range(11, 32), *range(127, 160), *range(0xD800, 0xE000)], "\ufffd"
)


def printable(text: str) -> str:
    """Return a text without control characters, except for tabs and line ends."""
    # Nearly all texts are printable, and this is many times faster.
    return text if text.isprintable() else text.translate(_UNPRINTABLE)


def one_line(text: str) -> str:
    """Return a printable text without line ends, so that no name or value begins a line."""
    return printable(text).replace("\n", "\ufffd")


def without_secrets(text: str) -> str:
    """Return a text without users in URLs, parameters of Spark Connect URLs, and secret confs.

    >>> without_secrets("http://me:pw@host/x")
    'http://***@host/x'
    """
    text = _USER.sub("***@", _PARAMETERS.sub(r"\1***", text))
    for assigned in _ASSIGNED:
        text = assigned.sub(rf"\1{HIDDEN}", text)
    return text


def shown_value(key: str, value: str, pattern: str | None = None) -> str:
    """Return the value of a conf, or Spark's text for a secret if the key looks like one.

    `pattern` is the value of spark.redaction.regex, which also looks at values.
    """
    try:
        own = re.compile(pattern) if pattern else None
    except re.error:
        # Java has constructs that Python does not know.
        return HIDDEN
    is_secret = _SECRET_KEY.search(key) or (own and (own.search(key) or own.search(value)))
    return HIDDEN if is_secret else without_secrets(value)

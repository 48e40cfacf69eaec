"""Secrets do not reach messages, findings and files."""

from __future__ import annotations

import pytest

from apportion import ApportionError, SettingError, doctor
from apportion.cli import _print_traceback
from apportion.redaction import HIDDEN, shown_value


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("http://user:HIDE@host:18080/x fails", "http://***@host:18080/x fails"),
        ("sc://host:15002/;token=HIDE;user_id=me is", "sc://host:15002/;*** is"),
        ("spark.x.secret.key=HIDE fails", f"spark.x.secret.key={HIDDEN} fails"),
        ("fs.s3a.access.key = HIDE, x", f"fs.s3a.access.key = {HIDDEN}, x"),
        ("mailto me@host or a token = b", "mailto me@host or a token = b"),
        ("spark.sql.shuffle.partitions=7", "spark.sql.shuffle.partitions=7"),
    ],
)  # fmt: skip
def test_messages_of_errors_have_no_secrets(message: str, shown: str) -> None:
    assert str(ApportionError(message)) == shown
    assert str(SettingError(message)) == shown


@pytest.mark.parametrize(
    ("key", "value", "pattern", "is_hidden"),
    [
        ("spark.ssl.keyPassword", "x", None, True),
        ("spark.hadoop.fs.s3a.access.key", "x", None, True),
        ("spark.sql.shuffle.partitions", "7", None, False),
        ("spark.corporate", "x", "corp", True),
        ("spark.x", "corp", "corp", True),
        ("spark.x", "y", "(?<broken", True),
    ],
)
def test_values_of_secret_confs_are_hidden(
    key: str, value: str, pattern: str | None, is_hidden: bool
) -> None:
    assert (shown_value(key, value, pattern) == HIDDEN) is is_hidden


def test_the_url_of_a_server_is_shown_without_its_token() -> None:
    assert "HIDE" not in str(doctor.examine_server("sc://localhost:1/;token=HIDE"))
    with pytest.raises(ApportionError, match="is not a Spark Connect URL") as error:
        doctor.examine_server("http://me:HIDE@host")
    assert "HIDE" not in str(error.value)


def test_tracebacks_of_commands_have_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    error = ValueError("sc://host/;token=HIDE does not answer")
    _print_traceback(ValueError, error, None)
    assert capsys.readouterr().err == "ValueError: sc://host/;*** does not answer\n"

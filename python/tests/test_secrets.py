"""Secrets do not reach messages, findings and files."""

from __future__ import annotations

import time

import pytest

from apportion import ApportionError, SettingError, doctor
from apportion.cli import _print_traceback
from apportion.redaction import HIDDEN, shown_value, without_secrets


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("http://user:HIDE@host:18080/x fails", "http://***@host:18080/x fails"),
        ("sc://host:15002/;token=HIDE;user_id=me is", "sc://host:15002/;*** is"),
        ("spark.x.secret.key=HIDE fails", f"spark.x.secret.key={HIDDEN} fails"),
        ("fs.s3a.access.key = HIDE, x", f"fs.s3a.access.key = {HIDDEN}, x"),
        ("fs.azure.account.key.a.dfs.net=HIDE== x", f"fs.azure.account.key.a.dfs.net={HIDDEN} x"),
        ("jdbc:x://h/d?user=a&password=HI,D(E)&b=1", f"jdbc:x://h/d?user=a&password={HIDDEN}&b=1"),
        ("jdbc:x://h;user=a;password=HIDE;b=1", f"jdbc:x://h;user=a;password={HIDDEN};b=1"),
        ("jdbc:x://h;user=a;pwd=HIDE;b=1", f"jdbc:x://h;user=a;pwd={HIDDEN};b=1"),
        ("https://a.blob/c?sv=1&sig=HI%2FDE%3D&se=2", f"https://a.blob/c?sv=1&sig={HIDDEN}&se=2"),
        ("password=HIDE;user=a", f"password={HIDDEN};user=a"),
        ("job.py --password=HIDE --x", f"job.py --password={HIDDEN} --x"),
        ("job.py --db-token 'HI DE' --x", f"job.py --db-token {HIDDEN} --x"),
        ("-Djavax.net.trustStorePassword=HIDE -Db", f"-Djavax.net.trustStorePassword={HIDDEN} -Db"),
        ("-Dx.password=HI,D(E)", f"-Dx.password={HIDDEN}"),
        ("-Djavax.net.trustStorePassword='HIDE HIDE'", f"-Djavax.net.trustStorePassword={HIDDEN}"),
        ("secret.key: HIDE", f"secret.key: {HIDDEN}"),
        ("fs.s3a.secret.key: HIDE, x", f"fs.s3a.secret.key: {HIDDEN}, x"),
        ("javax.trustStorePassword: HIDE", f"javax.trustStorePassword: {HIDDEN}"),
        ("cannot read token.sql: No such file", "cannot read token.sql: No such file"),
        ("a password: it is", "a password: it is"),
        ("a re-token is", "a re-token is"),
        ("job.py --token --x", "job.py --token --x"),
        ("x?design=1&b=2", "x?design=1&b=2"),
        ("secrets.sql:12:3: error", "secrets.sql:12:3: error"),
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
        ("spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net", "x", None, True),
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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.driver.extraJavaOptions", "-Xmx1g -Djavax.net.ssl.trustStorePassword=HIDE"),
        ("spark.jdbc.url", "jdbc:postgresql://host/db?user=a&password=HIDE"),
        ("spark.jdbc.url", "jdbc:sqlserver://host;user=a;password=HIDE"),
    ],
)
def test_secrets_in_values_of_confs_are_hidden(key: str, value: str) -> None:
    assert shown_value(key, value) == value.replace("HIDE", HIDDEN)


def test_the_time_for_a_long_text_is_linear() -> None:
    start = time.process_time()
    without_secrets("spark.token" * 50_000)
    without_secrets("-Da.token:" * 50_000)
    without_secrets(" --token" * 50_000)
    without_secrets("-" * 500_000)
    without_secrets(";pwd" * 50_000)
    assert time.process_time() - start < 5


def test_the_url_of_a_server_is_shown_without_its_token() -> None:
    assert "HIDE" not in str(doctor.examine_server("sc://localhost:1/;token=HIDE"))
    with pytest.raises(ApportionError, match="is not a Spark Connect URL") as error:
        doctor.examine_server("http://me:HIDE@host")
    assert "HIDE" not in str(error.value)


def test_tracebacks_of_commands_have_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    error = ValueError("sc://host/;token=HIDE does not answer")
    _print_traceback(ValueError, error, None)
    assert capsys.readouterr().err == "ValueError: sc://host/;*** does not answer\n"

"""The Thrift server, and a client of JDBC: the SQL of docs/deploying.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apportion._spark import jars
from tests import programs
from tests.docs.pages import blocks

from .servers import running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("thrift_server")
    server = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    with running(server, "spark.hive.server2.thrift.port", folder) as port:
        yield f"jdbc:hive2://localhost:{port}"


def test_hints_settings_and_decisions_work_on_the_thrift_server(url: str, tmp_path: Path) -> None:
    (script,) = [block.text for block in blocks("sql") if block.page == "deploying.md"]
    (tmp_path / "page.sql").write_text(f"{script}\nSELECT even_key(1, 5) AS surrogate;\n")
    beeline = (jars.spark_home() / "bin" / "beeline", "--outputformat=tsv2")
    printed = programs.run(*beeline, "-u", url, "-f", "page.sql", folder=tmp_path)
    decision = next(line for line in printed.splitlines() if "HashAggregate" in line)
    _, operator, parallelism, reason = decision.split("\t")
    assert (operator, parallelism) == ("HashAggregate", "8")
    assert "hint" in reason
    assert "surrogate\n" in printed

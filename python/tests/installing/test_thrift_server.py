"""The Thrift server, and a client of JDBC: the SQL of docs/deploying.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from apportion._spark import jars
from apportion.policies import Policies, Rule
from tests import programs
from tests.docs.pages import blocks

from .servers import running

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("thrift_server")
    server = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    path = folder / "policies.yaml"
    Policies(
        [Rule({"sql": "AS ruled", "user": "ann"}, settings={"parallelism": 5}, name="ann")]
    ).save(path)
    conf = f"spark.apportion.policies={path}"
    with running(server, "spark.hive.server2.thrift.port", folder, conf) as port:
        yield f"jdbc:hive2://localhost:{port}"


def test_hints_settings_and_decisions_work_on_the_thrift_server(url: str, tmp_path: Path) -> None:
    script, *_ = [block.text for block in blocks("sql") if block.page == "deploying.md"]
    (tmp_path / "page.sql").write_text(f"{script}\nSELECT even_key(1, 5) AS surrogate;\n")
    beeline = (jars.spark_home() / "bin" / "beeline", "--outputformat=tsv2")
    printed = programs.run(*beeline, "-u", url, "-f", "page.sql", folder=tmp_path)
    decision = next(line for line in printed.splitlines() if "HashAggregate" in line)
    _, operator, parallelism, reason = decision.split("\t")
    assert (operator, parallelism) == ("HashAggregate", "8")
    assert "hint" in reason
    assert "surrogate\n" in printed


def test_a_policy_file_applies_to_a_user_of_the_thrift_server(url: str, tmp_path: Path) -> None:
    (tmp_path / "ruled.sql").write_text(
        "SELECT id % 10 AS ruled, count(*) FROM range(0, 1000, 1, 4) GROUP BY 1;\n"
        "SELECT tasks, sources['parallelism'] FROM apportion_decisions();\n"
    )
    beeline = (jars.spark_home() / "bin" / "beeline", "--outputformat=tsv2", "-u", url)

    def decisions_of(user: str) -> str:
        return programs.run(*beeline, "-n", user, "-f", "ruled.sql", folder=tmp_path)

    assert "5\tpolicy file, rule 1 (ann)\n" in decisions_of("ann")
    assert "policy file" not in decisions_of("bob")

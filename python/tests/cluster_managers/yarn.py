"""YARN on this machine: its ResourceManager and NodeManagers, in one process."""

from __future__ import annotations

from pathlib import Path

from tests import programs
from tests.maven import jars
from tests.resources.cluster import HOME, eventually, kill

# The artifact of the small cluster needs these, and does not bring them.
_NEEDED = "org.junit.jupiter:junit-jupiter-api:5.13.4", "org.bouncycastle:bcpkix-jdk18on:1.80"
_NODES = 2
_SITE = """\
<configuration>
  <property><name>yarn.nodemanager.resource.memory-mb</name><value>4096</value></property>
  <property><name>yarn.nodemanager.resource.cpu-vcores</name><value>4</value></property>
  <property><name>yarn.nodemanager.vmem-check-enabled</name><value>false</value></property>
  <property>
    <name>yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage</name>
    <value>100</value>
  </property>
  <property><name>yarn.scheduler.minimum-allocation-mb</name><value>256</value></property>
  <property><name>yarn.scheduler.capacity.root.queues</name><value>default</value></property>
  <property><name>yarn.scheduler.capacity.root.default.capacity</name><value>100</value></property>
  <property><name>yarn.scheduler.capacity.maximum-am-resource-percent</name><value>1</value></property>
</configuration>
"""


class YarnCluster:
    """YARN with two NodeManagers, which have room for the application master and six executors."""

    url = "yarn"

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        given, written = directory / "given", directory / "written"
        given.mkdir()
        written.mkdir()
        (given / "yarn-site.xml").write_text(_SITE, "utf-8")
        self.environment = {"HADOOP_CONF_DIR": str(written), "SPARK_LOCAL_IP": "127.0.0.1"}
        self.conf = {
            "spark.yarn.am.memory": "512m",
            "spark.yarn.jars": f"local:{HOME}/jars/*",
            "spark.yarn.stagingDir": directory.as_uri(),
        }
        [hadoop] = (HOME / "jars").glob("hadoop-client-api-*.jar")
        version = hadoop.stem.removeprefix("hadoop-client-api-")
        fetched = jars(f"org.apache.hadoop:hadoop-client-minicluster:{version}", *_NEEDED)
        log = directory / "yarn.log"
        configuration = written / "yarn-site.xml"
        self._process = programs.start(
            *("java", "-Xmx512m", "-cp", f"{given}:{fetched}/*:{HOME}/jars/*"),
            Path(__file__).with_name("YarnCluster.java"),
            *(str(_NODES), configuration),
            log=log,
            folder=directory,
        )
        eventually("YARN", lambda: configuration.exists() or self._process.poll() is not None)
        assert configuration.exists(), log.read_text("utf-8")[-2000:]

    def stop(self) -> None:
        kill(self._process)

"""The jars in a Maven repository: `sbt publishAll`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from apportion._spark import jars
from tests import programs
from tests.docs.pages import ROOT

from .commands import HERE, QUERY, REASONS

pytestmark = pytest.mark.slow

GROUP = "io.apportion"
JARS = sorted((ROOT / "target" / "jars").glob("*.jar"))
POM = {"": "http://maven.apache.org/POM/4.0.0"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder, whose local Maven repository has the jars."""
    folder = tmp_path_factory.mktemp("home")
    programs.run(
        *(sys.executable, ROOT / "python" / "build_hook.py", "sbt", "publishAll"),
        environment={
            **os.environ,
            "JAVA_TOOL_OPTIONS": f"-Dmaven.repo.local={folder / '.m2' / 'repository'}",
        },
    )
    return folder


def published(home: Path, jar: Path, suffix: str) -> Path:
    artifact, version = jar.stem.rsplit("-", 1)
    folder = home / ".m2/repository" / GROUP.replace(".", "/") / artifact / version
    return folder / f"{jar.stem}{suffix}"


@pytest.mark.parametrize("jar", JARS, ids=lambda jar: jar.name)
class TestArtifacts:
    def test_the_published_jar_is_the_jar_of_the_wheel(self, jar: Path, home: Path) -> None:
        assert published(home, jar, ".jar").read_bytes() == jar.read_bytes()

    def test_sources_and_javadoc_are_published(self, jar: Path, home: Path) -> None:
        assert published(home, jar, "-sources.jar").is_file()
        assert published(home, jar, "-javadoc.jar").is_file()

    def test_the_pom_has_a_licence_and_only_provided_dependencies(
        self, jar: Path, home: Path
    ) -> None:
        pom = ElementTree.parse(published(home, jar, ".pom"))
        assert pom.findtext("licenses/license/name", namespaces=POM) == "Apache-2.0"
        assert "Spark SQL" in (pom.findtext("description", namespaces=POM) or "")
        scopes = [each.text for each in pom.iterfind("dependencies/dependency/scope", POM)]
        assert len(scopes) == len(pom.findall("dependencies/dependency", POM))
        assert {*scopes} <= {"provided"}
        assert pom.find("repositories", POM) is None


def test_spark_loads_the_jar_by_its_maven_coordinates(home: Path, tmp_path: Path) -> None:
    artifact, version = jars.find().stem.rsplit("-", 1)
    nowhere = "-Dhttps.proxyHost=localhost -Dhttps.proxyPort=9"
    printed = programs.run(
        jars.spark_home() / "bin" / "spark-sql",
        *HERE,
        *("--packages", f"{GROUP}:{artifact}:{version}"),
        *("--driver-java-options", f"-Duser.home={home} {nowhere}"),
        *("--conf", "spark.sql.extensions=io.apportion.ApportionExtension"),
        *("-e", f"{QUERY}; {REASONS};"),
        folder=tmp_path,
    )
    assert "1 task: " in printed

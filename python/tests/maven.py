"""Programs for tests that Maven's repository has."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_CACHE = Path.home() / ".cache/apportion/maven"
# Spark has Hadoop's classes.
_DEPENDENCY = """\
<dependency>
  <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
  <exclusions><exclusion>
    <groupId>org.apache.hadoop</groupId><artifactId>*</artifactId>
  </exclusion></exclusions>
</dependency>
"""
_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>apportion</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""


def jars(*artifacts: str) -> Path:
    """Return the folder with artifacts (`group:name:version`) and their dependencies.

    Fetches them if needed. The test is skipped if that is not possible.
    """
    folder = _CACHE / "-".join(
        artifact.split(":", 1)[1].replace(":", "-") for artifact in artifacts
    )
    if folder.exists():
        return folder
    if not shutil.which("mvn"):
        pytest.skip(f"mvn fetches {', '.join(artifacts)}, and is not installed")
    _CACHE.mkdir(parents=True, exist_ok=True)
    pom, fetched = folder.with_name(folder.name + ".xml"), folder.with_name(folder.name + ".part")
    dependencies = (_DEPENDENCY.format(*artifact.split(":")) for artifact in artifacts)
    pom.write_text(_POM.format("".join(dependencies)), "utf-8")
    command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"]
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={fetched}"]
    if subprocess.run([*command, *options], capture_output=True, check=False).returncode:
        pytest.skip(f"Maven does not have {', '.join(artifacts)}")
    return fetched.rename(folder)

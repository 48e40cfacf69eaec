"""Confs of Spark with the plugin `SlowTasks`, whose tasks wait for each byte that they read."""

from __future__ import annotations

import subprocess
from pathlib import Path

from apportion._spark import jars


def plugin(folder: Path, bytes_per_second: int) -> dict[str, str]:
    """Compile the plugin into `folder`, and return the confs that use it. Needs a JDK."""
    return {
        "spark.plugins": "SlowTasks",
        "spark.slowTasks.bytesPerSecond": str(bytes_per_second),
        **compiled(Path(__file__).with_name("SlowTasks.java"), folder),
    }


def compiled(source: Path, folder: Path) -> dict[str, str]:
    """Compile a Java file into `folder`, and return the confs that load it. Needs a JDK."""
    classes = f"{jars.spark_home() / 'jars'}/*"
    subprocess.run(["javac", "-proc:none", "-cp", classes, "-d", folder, source], check=True)
    return {
        "spark.driver.extraClassPath": str(folder),
        "spark.executor.extraClassPath": str(folder),
    }

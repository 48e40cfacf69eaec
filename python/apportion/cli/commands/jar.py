"""`apportion jar`."""

from __future__ import annotations

from apportion._spark import jars


def jar_command() -> None:
    r"""Print the path of the jar for the installed Spark.

    The installed Spark is SPARK_HOME, or else the pyspark package.

    ```text
    spark-submit --jars $(apportion jar) \
      --conf spark.sql.extensions=io.apportion.ApportionExtension app.py
    ```
    """
    print(jars.find())

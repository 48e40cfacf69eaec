"""`apportion jar`."""

from __future__ import annotations

from apportion._spark import jars


def jar() -> None:
    r"""Print the path of Apportion's jar for the installed Spark.

    The installed Spark is SPARK_HOME, or else the pyspark package.

    ```text
    $ apportion jar
    /opt/venv/.../apportion/jars/apportion-spark-4.2_2.13-0.1.0.jar
    ```

    Use the path in programs that you start with spark-submit or a cluster manager:

    ```text
    spark-submit --jars $(apportion jar) \
      --conf spark.sql.extensions=io.apportion.ApportionExtension app.py
    ```
    """
    print(jars.find())

"""`apportion jar`."""

from __future__ import annotations

from apportion._spark import jars


def jar() -> None:
    """Print the path of the extension's jar for the installed Spark (SPARK_HOME, else pyspark).

    For programs that are started by spark-submit or a cluster manager:

    `spark-submit --jars $(apportion jar) --conf \
spark.sql.extensions=io.apportion.ApportionExtension app.py`
    """
    print(jars.find())

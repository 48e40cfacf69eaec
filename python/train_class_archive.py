"""Runs one query, so that the JVM can archive the classes that Spark loads for all tests.

The Makefile runs this program with `-XX:ArchiveClassesAtExit`, and the tests use the archive.
"""

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sql("SELECT k, count(*) FROM (SELECT id % 3 AS k FROM range(9)) GROUP BY k").collect()
spark.stop()

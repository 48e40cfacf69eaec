"""Runs a query as every test does, for an archive of the classes that Spark loads: see Makefile."""

from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sql("SELECT k, count(*) FROM (SELECT id % 3 AS k FROM range(9)) GROUP BY k").collect()
spark.stop()

"""Runs queries, so that the JVM can archive the classes that Spark loads for most tests.

The Makefile runs this program with `-XX:ArchiveClassesAtExit`, and the tests use the archive.
"""

from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

import apportion

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = apportion.configure(builder).getOrCreate()
with TemporaryDirectory() as folder:
    spark.sql("SELECT id, id % 3 AS k, string(id) AS text FROM range(99)").write.parquet(
        f"{folder}/rows"
    )
    spark.read.parquet(f"{folder}/rows").createOrReplaceTempView("rows")
    spark.sql("""
        WITH groups AS (SELECT k, count(*) AS n, max(text) AS last FROM rows GROUP BY k)
        SELECT rows.k, n, row_number() OVER (PARTITION BY rows.k ORDER BY id) AS place
        FROM rows JOIN groups ON rows.k = groups.k LEFT JOIN range(9) AS few (other) ON id = other
        WHERE n > (SELECT min(id) FROM rows) ORDER BY place LIMIT 5
    """).collect()
    spark.sql("EXPLAIN FORMATTED SELECT count(DISTINCT text) FROM rows").collect()
    spark.sql("SELECT * FROM apportion_decisions()").collect()
spark.stop()

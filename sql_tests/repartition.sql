-- Repartition: a number in the query is kept, columns alone are not a number.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW boxes AS
SELECT id % 30 AS shelf, sha2(string(id), 256) AS content FROM range(0, 1000, 1, 2)

-- name: by number
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(content) AS n
  FROM (SELECT /*+ REPARTITION(5) */ * FROM boxes) GROUP BY 1)

-- name: by number and column
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(content) AS n
  FROM (SELECT /*+ REPARTITION(5, shelf) */ * FROM boxes) GROUP BY 1)

-- name: by column
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(content) AS n
  FROM (SELECT /*+ REPARTITION(shelf) */ * FROM boxes) GROUP BY 1)

-- name: by range of a column
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(content) AS n
  FROM (SELECT /*+ REPARTITION_BY_RANGE(shelf) */ * FROM boxes) GROUP BY 1)

-- name: without number or column
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(content) AS n
  FROM (SELECT /*+ REPARTITION */ * FROM boxes) GROUP BY 1)

-- name: coalesce has no shuffle
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(content) AS n
  FROM (SELECT /*+ COALESCE(1) */ * FROM boxes) GROUP BY 1)

-- name: a join on a repartitioned column
SELECT count(*) AS n, max(content) AS last
FROM (SELECT /*+ REPARTITION(5, shelf) */ * FROM boxes) a JOIN range(0, 30, 1, 2) b ON a.shelf = b.id

-- name: a number of subpartitions that is no power of two is raised to one
-- set: spark.sql.shuffle.partitions = 200
-- set: spark.apportion.dataVolumePerTask = 10KB
SELECT count(*) AS n FROM (SELECT content, count(*) FROM boxes GROUP BY content)

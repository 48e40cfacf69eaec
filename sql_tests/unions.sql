-- Unions: the branches are groups of their own.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW logs AS
SELECT id % 6 AS level, sha2(string(id), 256) AS line FROM range(0, 1000, 1, 2)

-- name: branches of different sizes get different parallelism
SELECT 'lines' AS what, count(*) AS n FROM (SELECT line, count(*) FROM logs GROUP BY line)
UNION ALL
SELECT 'levels', count(*) FROM (SELECT level, count(*) FROM logs GROUP BY level)

-- name: an aggregated branch and one without a shuffle
SELECT level, count(*) AS n FROM logs GROUP BY level
UNION ALL
SELECT 100, id FROM range(0, 2, 1, 1)

-- name: aggregates in a union are read apart
SELECT count(*) AS n, sum(length(line)) AS chars FROM (
  SELECT line, count(*) AS n FROM logs GROUP BY line
  UNION ALL
  SELECT string(level), count(*) FROM logs GROUP BY level)

-- name: union without duplicates
SELECT level FROM logs WHERE level < 4 UNION SELECT level FROM logs WHERE level > 2

-- name: a union whose branches agree with the aggregate above is one group
-- spark: >= 4.1
SELECT level, sum(n) AS n FROM (
  SELECT level, count(*) AS n FROM logs GROUP BY level
  UNION ALL
  SELECT level, count(*) AS n FROM logs WHERE level < 3 GROUP BY level) GROUP BY level

-- name: the same without Spark's partitioning of unions
-- set: spark.sql.unionOutputPartitioning = false
SELECT level, sum(n) AS n FROM (
  SELECT level, count(*) AS n FROM logs GROUP BY level
  UNION ALL
  SELECT level, count(*) AS n FROM logs WHERE level < 3 GROUP BY level) GROUP BY level

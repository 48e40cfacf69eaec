-- Adaptive writes: all shuffles of a query have one power of two of partitions. Spark's number stays where map tasks do not decide.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 32KB
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW events AS
SELECT id, id % 7 AS kind FROM range(0, 20000, 1, 2)

-- name: the number of partitions of Spark is raised to a power of two
SELECT count(*) AS groups FROM (SELECT id % 5000 AS k, count(*) AS n FROM events GROUP BY k)

-- name: the bytes of all tables raise the number
-- set: spark.sql.shuffle.partitions = 4
SELECT kind, count(*) AS n FROM (SELECT a.kind FROM events a JOIN events b ON a.id = b.id) GROUP BY kind

-- name: a minimum raises the number
-- set: spark.sql.shuffle.partitions = 4
-- set: spark.apportion.minParallelism = 20
SELECT kind, count(*) AS n FROM events GROUP BY kind

-- name: a parallelism that is no power of two reads parts of partition groups
SELECT /*+ PARALLELISM(5) */ id % 5000 AS k, count(*) AS n FROM events GROUP BY k HAVING max(id) % 1000 = 1

-- name: a query that sets the number keeps it
SELECT count(*) AS n FROM (SELECT /*+ REPARTITION(50, id) */ * FROM events)

-- name: a sort of few rows has one partition
SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY kind

-- name: without adaptive writes the number of Spark stays
-- set: spark.apportion.adaptiveWrites = false
SELECT count(*) AS groups FROM (SELECT id % 5000 AS k, count(*) AS n FROM events GROUP BY k)

-- name: without coalescing the partitions and tasks of Spark stay
-- set: spark.sql.adaptive.coalescePartitions.enabled = false
-- set: spark.sql.shuffle.partitions = 5
SELECT count(*) AS groups FROM (SELECT id % 5000 AS k, count(*) AS n FROM events GROUP BY k)

-- name: without coalescing a parallelism is still used
-- set: spark.sql.adaptive.coalescePartitions.enabled = false
-- set: spark.apportion.parallelism = 3
SELECT count(*) AS groups FROM (SELECT id % 5000 AS k, count(*) AS n FROM events GROUP BY k)

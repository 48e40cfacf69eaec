-- Rebalance: what is too large for one task is split, and the rest is apportioned with it.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.adaptive.advisoryPartitionSizeInBytes = 16KB
-- set: spark.sql.shuffle.partitions = 8

-- setup
CREATE TEMPORARY VIEW files AS
SELECT if(id < 600, 3, id % 40) AS folder, sha2(string(id), 256) AS hash FROM range(0, 1000, 1, 4)

-- name: without columns
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(hash) AS n
  FROM (SELECT /*+ REBALANCE */ * FROM files) GROUP BY 1)

-- name: by a skewed column
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(hash) AS n
  FROM (SELECT /*+ REBALANCE(folder) */ * FROM files) GROUP BY 1)

-- name: by number and column
SELECT count(*) AS tasks, sum(n) AS n FROM (
  SELECT spark_partition_id() AS task, count(hash) AS n
  FROM (SELECT /*+ REBALANCE(6, folder) */ * FROM files) GROUP BY 1)

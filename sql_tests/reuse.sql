-- Reused shuffles are decided again where they are read for something else.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW lines AS
SELECT id % 10 AS file, sha2(string(id), 256) AS line FROM range(0, 600, 1, 2)

-- name: a self-join reads one shuffle twice
SELECT count(*) AS n, max(a.line) AS last FROM lines a JOIN lines b ON a.line = b.line

-- name: a union of one aggregate with itself
SELECT count(*) AS n, max(line) AS last FROM (
  SELECT line, count(*) AS n FROM lines GROUP BY line
  UNION ALL
  SELECT line, count(*) AS n FROM lines GROUP BY line)

-- name: not reused
-- set: spark.sql.exchange.reuse = false
SELECT count(*) AS n, max(a.line) AS last FROM lines a JOIN lines b ON a.line = b.line

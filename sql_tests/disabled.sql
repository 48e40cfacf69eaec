-- Switched off, Spark decides alone and nothing is recorded.
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.apportion.mode = active

-- setup
CREATE TEMPORARY VIEW pairs AS SELECT id, id % 8 AS k FROM range(0, 100, 1, 2)

-- name: switched on
SELECT k, sum(id) AS total FROM pairs GROUP BY k

-- name: switched off
-- set: spark.apportion.enabled = false
SELECT k, sum(id) AS total FROM pairs GROUP BY k

-- name: without adaptive execution there is nothing to decide
-- set: spark.sql.adaptive.enabled = false
SELECT k, sum(id) AS total FROM pairs GROUP BY k

-- name: without Spark's coalescing the tasks of Spark stay
-- set: spark.sql.adaptive.coalescePartitions.enabled = false
SELECT k, sum(id) AS total FROM pairs GROUP BY k

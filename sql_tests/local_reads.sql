-- Local reads: a join that turns out to be small becomes a broadcast join, and reads its shuffle where it was written.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 12KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1
-- set: spark.sql.adaptive.autoBroadcastJoinThreshold = 8KB

-- setup
CREATE TEMPORARY VIEW trips AS
SELECT id % 90 AS taxi, sha2(string(id), 256) AS route FROM range(0, 1000, 1, 2)

-- setup
CREATE TEMPORARY VIEW taxis AS SELECT id AS taxi, id % 2 AS electric FROM range(0, 90, 1, 2)

-- name: the join becomes a broadcast
SELECT count(*) AS n, max(route) AS last FROM trips JOIN taxis USING (taxi)

-- name: without Spark's coalescing the tasks of Spark stay
-- set: spark.sql.adaptive.coalescePartitions.enabled = false
SELECT count(*) AS n, max(route) AS last FROM trips JOIN taxis USING (taxi)

-- name: without local reads
-- set: spark.sql.adaptive.localShuffleReader.enabled = false
SELECT count(*) AS n, max(route) AS last FROM trips JOIN taxis USING (taxi)

-- name: fewer local reads than map tasks
-- set: spark.apportion.parallelism = 1
SELECT count(*) AS n, max(route) AS last FROM trips JOIN taxis USING (taxi)

-- name: an odd number of local reads
-- set: spark.apportion.parallelism = 3
SELECT count(*) AS n, max(route) AS last FROM trips JOIN taxis USING (taxi)

-- name: an aggregate on the join key keeps the shuffle
SELECT count(*) AS taxis, max(n) AS most
FROM (SELECT taxi, count(route) AS n FROM trips JOIN taxis USING (taxi) GROUP BY taxi)

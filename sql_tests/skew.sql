-- Skewed joins: what is too large for one task is split where that is possible, and the rest apportioned with it.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 20KB
-- set: spark.sql.shuffle.partitions = 8
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW calls AS
SELECT if(id < 1200, 7, id % 50) AS caller, sha2(string(id), 256) AS record FROM range(0, 1600, 1, 4)

-- setup
CREATE TEMPORARY VIEW callers AS SELECT id AS caller, sha2(string(-id), 256) AS name FROM range(0, 50, 1, 2)

-- name: the left side is split
SELECT count(*) AS n, max(record) AS last, max(name) AS name FROM calls JOIN callers USING (caller)

-- name: the right side is split
SELECT count(*) AS n, max(record) AS last, max(name) AS name FROM callers JOIN calls USING (caller)

-- name: the outer side of an outer join is split
SELECT count(*) AS n, max(record) AS last, max(name) AS name FROM calls LEFT JOIN callers USING (caller)

-- name: the inner side of an outer join cannot be split
SELECT count(*) AS n, max(record) AS last, max(name) AS name FROM callers LEFT JOIN calls USING (caller)

-- name: a split that would add a shuffle is not made
SELECT count(*) AS callers, max(n) AS most
FROM (SELECT caller, count(record) AS n, max(name) AS name FROM calls JOIN callers USING (caller) GROUP BY caller)

-- name: without splits the skewed subpartition is one task
-- set: spark.sql.adaptive.skewJoin.enabled = false
SELECT count(*) AS n, max(record) AS last, max(name) AS name FROM calls JOIN callers USING (caller)

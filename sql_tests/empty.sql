-- Empty inputs: an exchange group without bytes has one task.
-- set: spark.apportion.mode = active
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW things AS SELECT id, id % 4 AS kind FROM range(0, 100, 1, 2)

-- setup
CREATE TEMPORARY VIEW nothing AS SELECT id, kind FROM things WHERE id < 0

-- name: groups of nothing
SELECT kind, count(*) AS n FROM nothing GROUP BY kind

-- name: groups of nothing with a minimum
-- set: spark.apportion.minParallelism = 3
SELECT kind, count(*) AS n FROM nothing GROUP BY kind

-- name: an aggregate of nothing
SELECT count(*) AS n, max(id) AS last FROM nothing

-- name: a join with nothing
SELECT t.id, n.id FROM things t JOIN nothing n USING (kind) WHERE t.id < 3

-- name: an outer join with nothing
SELECT t.id, n.id AS none FROM things t LEFT JOIN nothing n USING (kind) WHERE t.id < 3

-- name: a sort of nothing
-- order: kept
SELECT id FROM nothing ORDER BY id

-- name: a table of no partitions
SELECT kind, count(*) AS n FROM (SELECT id % 2 AS kind FROM range(0, 0, 1, 1)) GROUP BY kind

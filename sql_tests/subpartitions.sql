-- Subpartitions: as many as the upper end of what finished stages or tables make likely needs, but not more than Spark plans for it.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 32KB
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW events AS
SELECT id, id % 7 AS kind FROM range(0, 20000, 1, 2)

-- name: by the bytes of a table
SELECT count(*) AS groups FROM (SELECT id % 5000 AS k, count(*) AS n FROM events GROUP BY k)

-- name: by those of both sides of a join, which may multiply rows
SELECT kind, count(*) AS n FROM (SELECT a.kind FROM events a JOIN events b ON a.id = b.id) GROUP BY kind

-- name: a number that the query gives
SELECT count(*) AS n FROM (SELECT /*+ REPARTITION(50, id) */ * FROM events)

-- name: what a hint asks for
SELECT /*+ PARALLELISM(5) */ kind, count(*) AS n FROM events GROUP BY kind

-- name: room to balance
SELECT /*+ RANGES(balanced) */ kind, count(*) AS n FROM events GROUP BY kind

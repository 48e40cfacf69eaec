-- Cached tables: filling one is a query with decisions of its own; its result is no exchange.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW tickets AS
SELECT id % 25 AS queue, sha2(string(id), 256) AS ticket FROM range(0, 1000, 1, 2)

-- name: filling the cache
CACHE TABLE per_queue AS SELECT queue, count(ticket) AS n FROM tickets GROUP BY queue

-- setup
CACHE TABLE per_ticket AS SELECT ticket, min(queue) AS queue FROM tickets GROUP BY ticket

-- name: filling the cache where Spark lets its partitions change
-- spark: >= 4.0
-- set: spark.sql.optimizer.canChangeCachedPlanOutputPartitioning = true
CACHE TABLE per_queue_changed AS SELECT queue, max(ticket) AS last FROM tickets GROUP BY queue

-- name: an aggregate over a cached table
SELECT queue, count(*) AS n FROM per_ticket WHERE queue < 3 GROUP BY queue

-- name: a join of a cached table with a shuffle
SELECT count(*) AS n, max(a.ticket) AS last
FROM per_ticket a JOIN (SELECT ticket FROM tickets GROUP BY ticket) b ON a.ticket = b.ticket

-- setup
CREATE TEMPORARY VIEW lazily AS SELECT ticket, count(*) AS n FROM tickets GROUP BY ticket

-- setup
CACHE LAZY TABLE lazily

-- name: a lazily cached table is filled by its first query
SELECT sum(n) AS n FROM lazily

-- Aggregates: a stage gets the power of two nearest to its bytes divided by the volume of a task.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 18KB
-- set: spark.sql.shuffle.partitions = 16

-- setup
CREATE TEMPORARY VIEW events AS
SELECT id, id % 7 AS kind, sha2(string(id), 256) AS payload FROM range(0, 2000, 1, 2)

-- name: few groups fit one task
SELECT kind, count(*) AS n, sum(id) AS total FROM events GROUP BY kind

-- name: many groups need more tasks
SELECT count(*) AS groups, min(n) AS least, max(n) AS most
FROM (SELECT payload, count(*) AS n FROM events GROUP BY payload)

-- name: an aggregate without keys has a single partition
SELECT count(*) AS n, min(payload) AS first FROM events

-- name: an aggregate of an aggregate is decided twice
SELECT n, count(*) AS kinds FROM (SELECT kind, count(*) AS n FROM events GROUP BY kind) GROUP BY n

-- name: groups that are filtered
SELECT kind, count(*) AS n FROM events GROUP BY kind HAVING count(*) < 286

-- name: collected values
SELECT kind, size(collect_list(payload)) AS n, length(concat_ws('', collect_set(payload))) AS chars
FROM events GROUP BY kind

-- name: floating-point sums
-- digits: 12
SELECT kind, sum(id / 3.0D) AS thirds, avg(float(id)) AS mean FROM events GROUP BY kind

-- name: a repartition of the result is kept
SELECT /*+ REPARTITION(2, kind) */ kind, percentile(id, 0.5) AS median FROM events GROUP BY kind

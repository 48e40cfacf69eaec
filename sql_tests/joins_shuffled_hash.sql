-- Shuffled hash joins: one group, as for sort-merge joins.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 8KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW readings AS
SELECT id % 60 AS sensor, sha2(string(id), 256) AS value FROM range(0, 1000, 1, 2)

-- setup
CREATE TEMPORARY VIEW sensors AS SELECT id AS sensor, id % 4 AS room FROM range(0, 80, 1, 2)

-- name: inner join
SELECT /*+ SHUFFLE_HASH(s) */ count(*) AS n, max(r.value) AS last
FROM readings r JOIN sensors s ON r.sensor = s.sensor

-- name: left outer join
SELECT /*+ SHUFFLE_HASH(s) */ count(*) AS n, count(s.room) AS rooms, max(r.value) AS last
FROM readings r LEFT JOIN sensors s ON r.sensor = s.sensor AND s.room = 0

-- name: left semi join
SELECT /*+ SHUFFLE_HASH(s) */ count(*) AS n, max(r.value) AS last
FROM readings r LEFT SEMI JOIN sensors s ON r.sensor = s.sensor AND s.room = 0

-- name: a hash join and a sort-merge join on one key are one group
SELECT /*+ SHUFFLE_HASH(s), MERGE(t) */ count(*) AS n, max(r.value) AS last
FROM readings r JOIN sensors s ON r.sensor = s.sensor JOIN sensors t ON r.sensor = t.sensor

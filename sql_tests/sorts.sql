-- Sorts: a total order is a shuffle by ranges of the sort keys.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW words AS
SELECT id, sha2(string(id), 256) AS word FROM range(0, 1000, 1, 2)

-- name: a small total order
-- order: kept
SELECT id, word FROM words WHERE id < 5 ORDER BY word DESC

-- name: a total order over several tasks
-- order: kept
-- set: spark.apportion.dataVolumePerTask = 512
SELECT id, substr(word, 1, 8) AS start FROM words WHERE id % 100 = 0 ORDER BY word

-- name: a limited sort takes the first rows without a shuffle
-- order: kept
SELECT id FROM words ORDER BY word LIMIT 3

-- name: a sort of an aggregate
-- order: kept
SELECT substr(word, 1, 1) AS letter, count(*) AS n FROM words WHERE id < 60 GROUP BY 1 ORDER BY n DESC, letter

-- name: sort by within tasks
SELECT count(*) AS n, max(word) AS last FROM (SELECT word FROM words DISTRIBUTE BY word SORT BY word)

-- name: cluster by
SELECT id FROM words WHERE id < 4 CLUSTER BY id

-- NULL keys hash like any other key.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 8KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW sparse AS
SELECT if(id % 3 = 0, NULL, id % 5) AS k, if(id % 4 = 0, NULL, sha2(string(id), 256)) AS v
FROM range(0, 900, 1, 2)

-- name: a group of NULL
SELECT k, count(*) AS n, count(v) AS values FROM sparse GROUP BY k

-- name: NULL and the empty string differ
SELECT s, count(*) AS n FROM (SELECT CASE id % 3 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'NULL' END AS s
FROM range(0, 9, 1, 2)) GROUP BY s

-- name: NULL keys do not join
SELECT count(*) AS n, max(v) AS last FROM sparse a LEFT JOIN (VALUES (1), (NULL)) AS b(k) ON a.k = b.k

-- name: NULL keys join where NULL equals NULL
SELECT count(*) AS n, max(v) AS last FROM sparse a JOIN (VALUES (1), (NULL)) AS b(k) ON a.k <=> b.k

-- name: NULL inside of nested values
SELECT k, array_distinct(collect_list(struct(k, NULL AS none))) AS pairs, map('k', max(k)) AS m
FROM sparse WHERE v IS NULL GROUP BY k

-- DISTINCT, and the set operations that Spark plans as aggregates and joins.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW pages AS
SELECT id % 5 AS site, sha2(string(id % 1500), 256) AS url FROM range(0, 3000, 1, 2)

-- name: distinct rows of one column
SELECT DISTINCT site FROM pages

-- name: distinct rows of wide columns
SELECT count(*) AS rows, sum(length(url)) AS chars FROM (SELECT DISTINCT site, url FROM pages)

-- name: one distinct count
SELECT site, count(DISTINCT url) AS urls FROM pages GROUP BY site

-- name: two distinct counts
SELECT site, count(DISTINCT url) AS urls, count(DISTINCT length(url)) AS lengths
FROM pages GROUP BY site

-- name: intersect
SELECT site FROM pages WHERE site < 3 INTERSECT SELECT site FROM pages WHERE site > 1

-- name: except
SELECT site FROM pages EXCEPT SELECT site FROM pages WHERE site > 1

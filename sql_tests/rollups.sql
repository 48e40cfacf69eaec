-- Grouping sets: the rows are multiplied before the shuffle.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 14KB
-- set: spark.sql.shuffle.partitions = 16

-- setup
CREATE TEMPORARY VIEW cells AS
SELECT id % 2 AS a, id % 3 AS b, sha2(string(id % 300), 256) AS c FROM range(0, 600, 1, 2)

-- name: rollup
SELECT a, b, count(*) AS n FROM cells GROUP BY ROLLUP (a, b)

-- name: cube of wide keys
SELECT count(*) AS groups, sum(n) AS rows FROM (SELECT a, c, count(*) AS n FROM cells GROUP BY CUBE (a, c))

-- name: grouping sets
SELECT a, b, grouping_id(a, b) AS grouping, count(DISTINCT c) AS n
FROM cells GROUP BY GROUPING SETS ((a), (b), ())

-- Hints: a number for one block of a query, and for the blocks inside it that have none of their own.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 1KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW clicks AS
SELECT id % 40 AS banner, id % 7 AS day, sha2(string(id), 256) AS click FROM range(0, 800, 1, 2)

-- setup
CREATE TEMPORARY VIEW per_banner AS
SELECT /*+ PARALLELISM(4) */ banner, count(click) AS n FROM clicks GROUP BY banner

-- name: a group by and its order
SELECT /*+ PARALLELISM(5) */ banner % 3 AS third, count(*) AS n FROM clicks GROUP BY banner % 3 ORDER BY third

-- name: an inner block inherits
SELECT /*+ PARALLELISM(5) */ n, count(*) AS banners FROM (SELECT banner, count(click) AS n FROM clicks GROUP BY banner) GROUP BY n

-- name: unless it has a hint of its own
SELECT /*+ PARALLELISM(5) */ n, count(*) AS banners
FROM (SELECT /*+ PARALLELISM(3) */ banner, count(click) AS n FROM clicks GROUP BY banner) GROUP BY n

-- name: a view brings its hint
SELECT n, count(*) AS banners FROM per_banner GROUP BY n

-- name: between two numbers the volume decides
SELECT /*+ PARALLELISM(2, 4), DATA_VOLUME('10b') */ day, count(*) AS n FROM clicks GROUP BY day

-- name: a join belongs to the block that joins
SELECT /*+ PARALLELISM(6) */ count(*) AS n, a.day
FROM (SELECT /*+ PARALLELISM(3) */ day, max(click) AS click FROM clicks GROUP BY day) a
JOIN clicks b ON a.click = b.click GROUP BY a.day

-- name: more tasks than the subpartitions that Spark plans
SELECT /*+ PARALLELISM(20) */ day, count(*) AS n FROM clicks GROUP BY day

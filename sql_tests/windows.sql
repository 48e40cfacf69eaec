-- Window functions.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 20KB
-- set: spark.sql.shuffle.partitions = 16

-- setup
CREATE TEMPORARY VIEW visits AS
SELECT id, id % 20 AS user, sha2(string(id), 256) AS page FROM range(0, 1000, 1, 2)

-- name: the first rows of each partition
SELECT user, id FROM (
  SELECT user, id, page, row_number() OVER (PARTITION BY user ORDER BY page) AS place FROM visits)
WHERE place = 1 AND user < 5

-- name: all rows of each partition
SELECT count(*) AS n, sum(place) AS places, max(page) AS last FROM (
  SELECT page, rank() OVER (PARTITION BY user ORDER BY page) AS place FROM visits)

-- name: two windows over one partitioning share a shuffle
SELECT count(*) AS n, sum(place) AS places, sum(running) AS running, max(page) AS last FROM (
  SELECT page, rank() OVER (PARTITION BY user ORDER BY id) AS place,
    sum(id) OVER (PARTITION BY user ORDER BY page) AS running
  FROM visits)

-- name: a window without partitions has a single partition
SELECT id, row_number() OVER (ORDER BY page) AS place FROM visits WHERE id < 4

-- name: a window over an aggregate
SELECT user, n, dense_rank() OVER (PARTITION BY n ORDER BY user) AS place
FROM (SELECT user, count(page) AS n FROM visits WHERE id < 90 GROUP BY user) WHERE user BETWEEN 8 AND 12

-- Balanced ranges: contiguous, at most as many as tasks are decided, with the smallest largest one there can be.
-- set: spark.apportion.mode = active
-- set: spark.apportion.ranges = balanced
-- set: spark.apportion.dataVolumePerTask = 8KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW visits AS
SELECT if(id % 3 = 0, 7, id % 50) AS page, sha2(string(id), 256) AS visit FROM range(0, 900, 1, 2)

-- name: a window over few pages, one of which has a third of the rows
SELECT page, max(place) AS visits
FROM (SELECT page, row_number() OVER (PARTITION BY page ORDER BY visit) AS place FROM visits)
WHERE page < 9 GROUP BY page

-- name: both sides of a join have the same ranges
SELECT count(*) AS n FROM visits a JOIN visits b ON a.visit = b.visit

-- name: a hint takes even ranges back
SELECT /*+ RANGES(even) */ count(*) AS n FROM visits a JOIN visits b ON a.visit = b.visit

-- name: no rows
SELECT page, count(*) AS n FROM visits WHERE page < 0 GROUP BY page

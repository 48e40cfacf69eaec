-- Common table expressions: inlined, with a shuffle used again where the plans are the same.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 9KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW clicks AS
SELECT id % 40 AS banner, sha2(string(id), 256) AS click FROM range(0, 800, 1, 2)

-- name: a cte used once
WITH per_banner AS (SELECT banner, count(click) AS n FROM clicks GROUP BY banner)
SELECT n, count(*) AS banners FROM per_banner GROUP BY n

-- name: a cte used twice reuses its shuffle
WITH per_click AS (SELECT click, count(*) AS n FROM clicks GROUP BY click)
SELECT count(*) AS n, max(a.click) AS last FROM per_click a JOIN per_click b ON a.click = b.click

-- name: a cte of ctes
WITH firsts AS (SELECT banner, min(click) AS click FROM clicks GROUP BY banner),
  lasts AS (SELECT banner, max(click) AS click FROM clicks GROUP BY banner),
  changed AS (SELECT banner FROM firsts JOIN lasts USING (banner) WHERE firsts.click <> lasts.click)
SELECT count(*) AS n, min(banner) AS first FROM changed

-- name: a recursive cte
-- spark: >= 4.1
WITH RECURSIVE steps(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM steps WHERE n < 5)
SELECT n % 2 AS odd, sum(n) AS total FROM steps GROUP BY 1

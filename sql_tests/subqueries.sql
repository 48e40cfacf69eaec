-- Subqueries are queries of their own, or joins.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 8KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW parts AS
SELECT id, id % 10 AS supplier, sha2(string(id), 256) AS label FROM range(0, 600, 1, 2)

-- name: a scalar subquery
SELECT supplier, count(*) AS n FROM parts WHERE id > (SELECT avg(id) FROM parts) GROUP BY supplier

-- name: a correlated scalar subquery is a join
SELECT count(*) AS n, max(label) AS last FROM parts p
WHERE id > (SELECT avg(id) FROM parts q WHERE q.supplier = p.supplier)

-- name: a scalar subquery with a shuffle of its own
SELECT id FROM parts WHERE id < (SELECT min(n) - 57 FROM (SELECT supplier, count(*) AS n FROM parts GROUP BY supplier))

-- name: in
SELECT count(*) AS n, max(label) AS last FROM parts
WHERE supplier IN (SELECT supplier FROM parts WHERE id < 3)

-- name: not in
SELECT count(*) AS n, max(label) AS last FROM parts
WHERE supplier NOT IN (SELECT supplier FROM parts WHERE id < 3)

-- name: exists
SELECT count(*) AS n, max(label) AS last FROM parts p
WHERE EXISTS (SELECT 1 FROM parts q WHERE q.id = p.id + 500)

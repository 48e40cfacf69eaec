-- Broadcast joins: what is broadcast to every task takes up a part of its volume.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 20KB
-- set: spark.apportion.minTaskVolume = 5KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1

-- setup
CREATE TEMPORARY VIEW sales AS
SELECT id % 50 AS item, sha2(string(id), 256) AS receipt FROM range(0, 1000, 1, 2)

-- setup
CREATE TEMPORARY VIEW items AS
SELECT id AS item, concat('item ', id) AS name FROM range(0, 40, 1, 1)

-- setup
CREATE TEMPORARY VIEW catalog AS
SELECT id AS item, sha2(string(-id), 512) AS text FROM range(0, 400, 1, 1)

-- name: nothing is broadcast
SELECT count(*) AS receipts, max(n) AS most
FROM (SELECT receipt, count(*) AS n FROM sales GROUP BY receipt)

-- name: a broadcast table has no shuffle
SELECT /*+ BROADCAST(items) */ name, count(*) AS n FROM sales JOIN items USING (item)
WHERE item < 3 GROUP BY name

-- name: a small broadcast leaves the volume nearly as it is
SELECT /*+ BROADCAST(items) */ count(*) AS n, max(receipt) AS last
FROM (SELECT receipt, min(item) AS item FROM sales GROUP BY receipt) JOIN items USING (item)

-- name: a large broadcast halves the volume at most
SELECT /*+ BROADCAST(catalog) */ count(*) AS n, max(receipt) AS last, max(text) AS text
FROM (SELECT receipt, min(item) AS item FROM sales GROUP BY receipt) JOIN catalog USING (item)

-- name: a large broadcast with a smaller ratio
-- set: spark.apportion.broadcastRatio = 0.01
SELECT /*+ BROADCAST(catalog) */ count(*) AS n, max(receipt) AS last, max(text) AS text
FROM (SELECT receipt, min(item) AS item FROM sales GROUP BY receipt) JOIN catalog USING (item)

-- name: an outer join with a broadcast
SELECT /*+ BROADCAST(items) */ count(*) AS n, count(name) AS names, max(receipt) AS last
FROM (SELECT receipt, min(item) AS item FROM sales GROUP BY receipt) LEFT JOIN items USING (item)

-- name: a broadcast aggregate is decided on its own
SELECT /*+ BROADCAST(totals) */ count(*) AS n, max(receipt) AS last
FROM (SELECT receipt, min(item) AS item FROM sales GROUP BY receipt)
JOIN (SELECT item, count(*) AS n FROM sales GROUP BY item) totals USING (item)

-- name: under a join that multiplies rows the volume is the least
SELECT /*+ BROADCAST(items) */ count(*) AS n, max(receipt) AS last
FROM (SELECT receipt, min(item) AS item FROM sales GROUP BY receipt) a JOIN items ON a.item < items.item

-- name: both sides of a cartesian product are decided on their own
SELECT /*+ SHUFFLE_REPLICATE_NL(a) */ count(*) AS n, max(a.receipt) AS last
FROM (SELECT receipt, count(*) AS n FROM sales GROUP BY receipt) a
CROSS JOIN (SELECT item, count(*) AS n FROM sales GROUP BY item) b

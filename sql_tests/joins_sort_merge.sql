-- Sort-merge joins: both sides are read with the same ranges, decided from the bytes of both.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 10KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.sql.autoBroadcastJoinThreshold = -1
-- set: spark.apportion.rules.disabled = PreferHashJoins

-- setup
CREATE TEMPORARY VIEW orders AS
SELECT id AS order_id, id % 100 AS customer, sha2(string(id), 256) AS note FROM range(0, 1000, 1, 2)

-- setup
CREATE TEMPORARY VIEW customers AS
SELECT id AS customer, concat('customer ', id) AS name, id % 3 AS region FROM range(0, 120, 1, 2)

-- name: inner join
SELECT count(*) AS n, max(note) AS last, min(name) AS first FROM orders JOIN customers USING (customer)

-- name: left outer join
SELECT count(*) AS n, count(order_id) AS orders, max(note) AS last
FROM customers LEFT JOIN orders USING (customer)

-- name: full outer join
SELECT count(*) AS n, count(o.order_id) AS orders, count(c.name) AS customers, max(o.note) AS last
FROM orders o FULL JOIN customers c ON o.customer = c.customer + 50

-- name: left semi join
SELECT count(*) AS n, max(note) AS last
FROM orders LEFT SEMI JOIN customers ON orders.customer = customers.customer AND customers.region = 1

-- name: left anti join
SELECT name FROM customers LEFT ANTI JOIN orders ON orders.customer = customers.customer
WHERE region = 0

-- name: three tables on one key are one group
SELECT count(*) AS n, max(o.note) AS last
FROM orders o JOIN customers c USING (customer) JOIN customers d USING (customer)

-- name: joins on two keys are two groups
SELECT count(*) AS n, max(o.note) AS last
FROM orders o JOIN customers c USING (customer) JOIN orders p ON p.order_id = o.order_id + 1

-- name: an aggregate on the join key shares the join's shuffles
SELECT count(*) AS customers, max(n) AS most
FROM (SELECT customer, count(note) AS n, max(name) AS name
      FROM orders JOIN customers USING (customer) GROUP BY customer)

-- name: a join of two aggregates shares the aggregates' shuffles
SELECT count(*) AS n, sum(a.n - b.n) AS difference
FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) a
JOIN (SELECT customer, count(*) AS n FROM customers GROUP BY customer) b USING (customer)

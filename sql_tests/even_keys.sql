-- Even keys: ten buckets over five tasks, by Spark's hash and by surrogates.
-- set: spark.apportion.mode = active
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.apportion.dataVolumePerTask = 16KB

-- setup
CREATE TEMPORARY VIEW items AS
SELECT CAST(id % 10 AS INT) AS bucket, sha2(string(id), 256) AS content FROM range(0, 10000, 1, 2)

-- name: by the hash of the buckets one of five tasks is empty
SELECT task, sort_array(collect_set(bucket)) AS buckets FROM (
  SELECT spark_partition_id() AS task, * FROM (SELECT /*+ REPARTITION(5, bucket) */ * FROM items))
GROUP BY task

-- name: by even keys each task has two buckets
SELECT task, sort_array(collect_set(bucket)) AS buckets FROM (
  SELECT spark_partition_id() AS task, * FROM (
    SELECT /*+ REPARTITION(5, key) */ * FROM (SELECT *, even_key(bucket, 5) AS key FROM items)))
GROUP BY task

-- name: grouping by the surrogate is grouping by the bucket
-- set: spark.apportion.parallelism = 4
SELECT first(bucket) AS bucket, count(DISTINCT bucket) AS buckets, max(content) AS last
FROM items GROUP BY even_key(bucket, 4, 16)

-- name: the same without a surrogate
-- set: spark.apportion.parallelism = 4
SELECT bucket, max(content) AS last FROM items GROUP BY bucket

-- name: where rows go
SELECT bucket, subpartition_of(16, bucket) AS subpartition, task_of(4, 16, bucket) AS task,
  task_of(4, 16, even_key(bucket, 4, 16)) AS even_task
FROM items GROUP BY bucket

-- name: text has even keys by its rank
SELECT word, task_of(2, 2, even_key(dense_rank() OVER (ORDER BY word) - 1, 2)) AS task
FROM VALUES ('north'), ('east'), ('south'), ('west') AS t(word)

-- name: key groups of Flink
SELECT bucket, flink_key_group(bucket, 128) AS key_group,
  flink_operator_index(flink_key_group(bucket, 128), 5) AS operator,
  flink_operator_index(flink_key_group(flink_rebalance_keys(5)[bucket % 5], 128), 5) AS rebalanced
FROM items GROUP BY bucket

-- name: the key groups of operators of Flink
SELECT id AS operator, flink_key_group_range(id, 5) AS key_groups FROM range(0, 5, 1, 1)

-- name: no task at all
-- error: p must be a constant whole number from 1 to 1048576, but is 0
SELECT even_key(bucket, 0) FROM items

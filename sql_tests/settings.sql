-- Settings: who sets the number.
-- set: spark.apportion.mode = active
-- set: spark.sql.adaptive.advisoryPartitionSizeInBytes = 16KB
-- set: spark.sql.shuffle.partitions = 16

-- setup
CREATE TEMPORARY VIEW samples AS SELECT sha2(string(id), 256) AS sample FROM range(0, 1000, 1, 2)

-- name: without a volume of its own Spark's advisory size is used
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: an explicit parallelism is not rounded
-- set: spark.apportion.parallelism = 5
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: an explicit parallelism above the number of subpartitions that Spark plans
-- set: spark.apportion.parallelism = 50
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: an explicit parallelism that is no power of two, above the number of subpartitions that Spark plans
-- set: spark.apportion.parallelism = 40
-- set: spark.sql.shuffle.partitions = 20
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: an explicit parallelism does not hold for a single partition
-- set: spark.apportion.parallelism = 2
SELECT count(*) AS n FROM samples

-- name: a minimum is raised to a power of two
-- set: spark.apportion.minParallelism = 9
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: a maximum is lowered to a power of two
-- set: spark.apportion.maxParallelism = 3
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: a minimum above the number of subpartitions that Spark plans
-- set: spark.apportion.minParallelism = 32
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: a volume beside Spark's advisory size
-- set: spark.apportion.dataVolumePerTask = 8KB
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: a volume of one byte
-- set: spark.apportion.maxParallelism = 32
-- set: spark.apportion.dataVolumePerTask = 1
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: a large volume
-- set: spark.apportion.dataVolumePerTask = 1GB
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: reactive uses the two slots of the session
-- set: spark.apportion.mode = reactive
-- set: spark.apportion.dataVolumePerTask = 1GB
-- set: spark.apportion.minTaskVolume = 1KB
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: reactive leaves every task the least volume
-- set: spark.apportion.mode = reactive
-- set: spark.apportion.dataVolumePerTask = 1GB
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)

-- name: auto is reactive without dynamic allocation
-- set: spark.apportion.mode = auto
-- set: spark.apportion.dataVolumePerTask = 1GB
-- set: spark.apportion.minTaskVolume = 1KB
SELECT count(*) AS n FROM (SELECT sample, count(*) FROM samples GROUP BY sample)


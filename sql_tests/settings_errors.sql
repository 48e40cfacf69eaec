-- Wrong settings are refused where they are set.

-- name: unknown name
-- error: Did you mean spark.apportion.parallelism?
SET spark.apportion.paralelism = 4

-- name: not a number
-- error: spark.apportion.parallelism
SET spark.apportion.parallelism = many

-- name: zero
-- error: spark.apportion.parallelism
SET spark.apportion.parallelism = 0

-- name: a minimum below one
-- error: spark.apportion.minParallelism
SET spark.apportion.minParallelism = 0

-- name: a volume below one byte
-- error: spark.apportion.dataVolumePerTask
SET spark.apportion.dataVolumePerTask = 0

-- name: a volume with an unknown unit
-- error: spark.apportion.dataVolumePerTask
SET spark.apportion.dataVolumePerTask = 64 parsecs

-- name: a ratio that leaves no volume
-- error: spark.apportion.broadcastRatio
SET spark.apportion.broadcastRatio = 1.0

-- name: an unknown mode
-- error: auto, active, reactive
SET spark.apportion.mode = eager

-- name: unknown ranges
-- error: spark.apportion.ranges
SET spark.apportion.ranges = odd

-- name: no power of two between the bounds
-- set: spark.apportion.minParallelism = 5
-- error: there is no power of two in [5, 7]
SET spark.apportion.maxParallelism = 7

-- name: wrong values are refused in the session's settings too
-- set: spark.apportion.broadcastRatio = 2
-- error: spark.apportion.broadcastRatio
SELECT 1

-- name: bounds that were set apart are refused by the first query
-- set: spark.apportion.minParallelism = 5
-- set: spark.apportion.maxParallelism = 7
-- error: there is no power of two in [5, 7]
SELECT 1

-- Wrong settings are refused where they are set.

-- name: an unknown name
-- error: Did you mean spark.apportion.parallelism?
SET spark.apportion.paralelism = 4

-- name: a parallelism that is no number
-- error: spark.apportion.parallelism
SET spark.apportion.parallelism = many

-- name: a parallelism of zero
-- error: Allowed: 1 or more, or -1 (decide).
SET spark.apportion.parallelism = 0

-- name: a negative parallelism that does not mean to decide
-- error: Allowed: 1 or more, or -1 (decide).
SET spark.apportion.parallelism = -2

-- name: a minimum below one
-- error: Allowed: 1 or more.
SET spark.apportion.minParallelism = 0

-- name: a volume below one byte
-- error: Allowed: 1 byte or more.
SET spark.apportion.dataVolumePerTask = 0

-- name: a volume in an unknown unit
-- error: 64 parsecs
SET spark.apportion.dataVolumePerTask = 64 parsecs

-- name: a broadcast ratio that leaves no volume
-- error: Allowed: above 0.0 and below 1.0.
SET spark.apportion.broadcastRatio = 1.0

-- name: an unknown mode
-- error: Allowed: auto, active, reactive, observe.
SET spark.apportion.mode = eager

-- name: unknown ranges
-- error: Allowed: even
SET spark.apportion.ranges = odd

-- name: no task
-- error: Allowed: 1 or more.
SET spark.apportion.minParallelism = 0

-- name: no power of two between the bounds
-- set: spark.apportion.minParallelism = 5
-- error: there is no power of two in [5, 7]
SET spark.apportion.maxParallelism = 7

-- name: wrong values are refused in the session's conf too
-- set: spark.apportion.broadcastRatio = 2
-- error: Allowed: above 0.0 and below 1.0.
SELECT 1

-- name: bounds that exclude each other are refused by the first query
-- set: spark.apportion.minParallelism = 5
-- set: spark.apportion.maxParallelism = 7
-- error: there is no power of two in [5, 7]
SELECT 1

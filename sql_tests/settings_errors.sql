-- Wrong settings are refused where they are set.

-- name: an unknown name
-- error: Did you mean spark.apportion.parallelism?
SET spark.apportion.paralelism = 4

-- name: a parallelism that is no number
-- error: The value 'many' in the config "spark.apportion.parallelism" is invalid.
SET spark.apportion.parallelism = many

-- name: a parallelism of zero
-- error: INVALID_CONF_VALUE.REQUIREMENT
SET spark.apportion.parallelism = 0

-- name: a negative parallelism that does not mean to decide
-- error: Allowed: 1 or more, or -1 (decide).
SET spark.apportion.parallelism = -2

-- name: a minimum below one
-- error: The value '0' in the config "spark.apportion.minParallelism" is invalid. Allowed: 1 or more.
SET spark.apportion.minParallelism = 0

-- name: a volume below one byte
-- error: "spark.apportion.dataVolumePerTask" is invalid. Allowed: 1 byte or more.
SET spark.apportion.dataVolumePerTask = 0

-- name: a volume in an unknown unit
-- error: The value '64 parsecs' in the config "spark.apportion.dataVolumePerTask" is invalid.
SET spark.apportion.dataVolumePerTask = 64 parsecs

-- name: a broadcast ratio that leaves no volume
-- error: "spark.apportion.broadcastRatio" is invalid. Allowed: above 0.0 and below 1.0.
SET spark.apportion.broadcastRatio = 1.0

-- name: an unknown mode
-- error: The value 'eager' in the config "spark.apportion.mode" is invalid. Allowed: auto, active, reactive.
SET spark.apportion.mode = eager

-- name: unknown ranges
-- error: The value 'odd' in the config "spark.apportion.ranges" is invalid. Allowed: even
SET spark.apportion.ranges = odd

-- name: no decision to keep
-- error: "spark.apportion.retainedDecisions" is invalid. Allowed: 1 or more.
SET spark.apportion.retainedDecisions = 0

-- name: no power of two between the bounds
-- set: spark.apportion.minParallelism = 5
-- error: there is no power of two in [5, 7]
SET spark.apportion.maxParallelism = 7

-- name: wrong values are refused in the session's conf too
-- set: spark.apportion.broadcastRatio = 2
-- error: "spark.apportion.broadcastRatio" is invalid.
SELECT 1

-- name: bounds that exclude each other are refused by the first query
-- set: spark.apportion.minParallelism = 5
-- set: spark.apportion.maxParallelism = 7
-- error: there is no power of two in [5, 7]
SELECT 1

-- Wrong hints are refused where somebody asked for that.
-- set: spark.apportion.hints.strict = true

-- name: a misspelt name
-- error: Hint PARALELISM(8) at line 1, column 8: unknown hint. Did you mean PARALLELISM?
SELECT /*+ PARALELISM(8) */ 1

-- name: a number out of range
-- error: APPORTION_INVALID_HINT.APH303
SELECT /*+ PARALLELISM(0) */ 1

-- name: a minimum above the maximum
-- error: PARALLELISM has a minimum (64) above its maximum (4). Write PARALLELISM(4, 64).
SELECT /*+ PARALLELISM(64, 4) */ 1

-- name: a table that the block does not have
-- error: SOURCE_PARALLELISM names u, which is not a table or alias of its block (the block has t).
SELECT /*+ SOURCE_PARALLELISM(u, 8) */ * FROM range(3) AS t

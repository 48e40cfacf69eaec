-- Writes: a file per task of the stage that writes.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 16KB
-- set: spark.sql.shuffle.partitions = 16
-- set: spark.apportion.sources.enabled = false

-- setup
CREATE TEMPORARY VIEW rows AS
SELECT id % 4 AS day, sha2(string(id), 256) AS row FROM range(0, 1000, 1, 2)

-- name: create table as select
CREATE TABLE golden_created USING parquet AS SELECT row, count(*) AS n FROM rows GROUP BY row

-- setup
CREATE TABLE golden_written (row STRING, n BIGINT) USING parquet

-- name: insert overwrite
INSERT OVERWRITE golden_written SELECT row, count(*) AS n FROM rows GROUP BY row

-- setup
CREATE TABLE golden_read USING parquet AS SELECT row, count(*) AS n FROM rows GROUP BY row

-- name: one file per task
SELECT count(DISTINCT file) AS files, count(*) AS rows, max(row) AS last
FROM (SELECT input_file_name() AS file, row FROM golden_read)

-- setup
CREATE TABLE golden_partitioned (row STRING, day BIGINT) USING parquet PARTITIONED BY (day)

-- name: insert into partitions
INSERT OVERWRITE golden_partitioned SELECT /*+ REBALANCE(day) */ row, day FROM rows

-- name: insert a sorted result
INSERT OVERWRITE golden_written SELECT row, day FROM rows ORDER BY row

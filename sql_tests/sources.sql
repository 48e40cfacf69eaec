-- Scans of files: as many tasks as the bytes make, or as a hint or a setting says.
-- set: spark.apportion.mode = active
-- set: spark.apportion.dataVolumePerTask = 32KB
-- set: spark.sql.files.openCostInBytes = 0

-- setup
CREATE TABLE golden_scanned USING csv AS
SELECT /*+ REPARTITION(1) */ id, sha2(string(id), 256) AS payload FROM range(0, 2000, 1, 1)

-- name: by bytes
SELECT count(payload) AS n, max(payload) AS last FROM golden_scanned

-- name: by hint
SELECT /*+ SOURCE_PARALLELISM(3) */ count(payload) AS n, max(payload) AS last FROM golden_scanned

-- name: one table of two
SELECT /*+ SOURCE_PARALLELISM(b, 2) */ count(*) AS n
FROM golden_scanned a JOIN golden_scanned b ON a.payload = b.payload AND a.id < b.id + 1

-- name: no more than the most
-- set: spark.apportion.sources.maxParallelism = 2
SELECT count(payload) AS n, max(payload) AS last FROM golden_scanned

-- name: by setting
-- set: spark.apportion.sources.parallelism = 4
SELECT count(payload) AS n, max(payload) AS last FROM golden_scanned

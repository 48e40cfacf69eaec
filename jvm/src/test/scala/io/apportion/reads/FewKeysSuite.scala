package io.apportion.reads

import io.apportion.SparkSuite
import io.apportion.report.DecisionRecord

/** Where a few keys leave tasks empty beside full ones, the reason names the remedy. */
class FewKeysSuite extends SparkSuite {
  private val settings = Seq(
    "mode" -> "active",
    "dataVolumePerTask" -> "256KB",
    "adaptiveWrites" -> "false",
    "spark.sql.shuffle.partitions" -> "16"
  )

  /** Ten buckets of about 350 KB each. */
  private val rows =
    "(SELECT CAST(id % 10 AS INT) AS bucket, sha2(string(id), 256) AS word FROM range(0, 100000, 1, 2))"

  private def reading(query: String, more: (String, String)*): DecisionRecord =
    decisionsOf(query, settings ++ more: _*).maxBy(_.inputBytes)

  private val byBucket = s"SELECT bucket, size(collect_set(word)) FROM $rows GROUP BY bucket"

  private def repartitioned(key: String): String =
    s"""SELECT max(word) FROM (
       |SELECT /*+ REPARTITION(5, key) */ * FROM (SELECT *, $key AS key FROM $rows)) GROUP BY key""".stripMargin

  test("the reason of an aggregate by few keys recommends even_key") {
    val reason = reading(byBucket, "parallelism" -> "8").reason
    assert(reason.matches("8 tasks: .*, 3 of 8 tasks are empty; see even_key\\."), reason)
  }

  test("the reason of an unchanged repartition by few keys recommends even_key") {
    val reason = reading(repartitioned("bucket")).reason
    assert(reason.matches("Unchanged: .* by repartition, 1 of 5 tasks are empty; see even_key\\."), reason)
  }

  test("the reason does not recommend even_key for keys that are already even") {
    val decision = reading(repartitioned("even_key(bucket, 5)"))
    assert(decision.largestTaskBytes < 1.1 * decision.meanTaskBytes)
    assert(!decision.reason.contains("even_key"))
  }

  test("the reason does not recommend even_key for many keys") {
    assert(!reading(s"SELECT word, count(*) FROM $rows GROUP BY word").reason.contains("even_key"))
  }

  test("the reason does not recommend even_key for few bytes") {
    val reason = reading(byBucket, "parallelism" -> "8", "dataVolumePerTask" -> "64MB", "minTaskVolume" -> "4MB").reason
    assert(!reason.contains("even_key"))
  }

  test("the reason does not recommend even_key for rows of a sort") {
    val reason = reading(s"SELECT max(word) FROM (SELECT * FROM $rows ORDER BY bucket)", "parallelism" -> "8").reason
    assert(!reason.contains("even_key"))
  }
}

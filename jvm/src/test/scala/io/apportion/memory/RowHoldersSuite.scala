package io.apportion.memory

import io.apportion.SparkSuite
import io.apportion.decision.memory.HeldRows
import io.apportion.report.DecisionRecord

/** Memory for the rows that operators hold: 20,000 rows of `numbers`, which one task reads. */
class RowHoldersSuite extends SparkSuite {
  private val oneTask = Seq(
    "parallelism" -> "1",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.join.preferSortMergeJoin" -> "true"
  )

  private def last(query: String): DecisionRecord = decisionsOf(query, oneTask: _*).last

  /** Memory of the last stage of a query. */
  private def memory(query: String): Long = last(query).largestTaskMemory.get

  /** Memory for the 20,000 rows of each input, by what is held of one row. */
  private def rows(held: HeldRows*): Long = HeldRows.needed(held, _ => 20000L)

  private val window = "row_number() OVER (PARTITION BY k ORDER BY id) AS n"

  test("a sort holds its rows, and an array of pointers") {
    // A row of two integers has 24 bytes.
    assert(memory(s"SELECT k, id, $window FROM numbers") == rows(HeldRows(24 + 8, Seq(32))))
  }

  test("a merge join holds the rows of both sides") {
    val side = HeldRows(16 + 8, Seq(32))
    assert(memory("SELECT /*+ MERGE(a) */ a.id FROM numbers a JOIN numbers b ON a.id = b.id") == rows(side, side))
  }

  test("a shuffled hash join on an integer holds one side in arrays") {
    val query = "SELECT /*+ SHUFFLE_HASH(b) */ a.id, b.k FROM numbers a JOIN numbers b ON a.id = b.id"
    assert(memory(query) == rows(HeldRows(0, Seq(24 + 8, 32))))
  }

  test("a shuffled hash join on text holds one side with its keys, and a hash table") {
    val query = "SELECT /*+ SHUFFLE_HASH(b) */ a.id, b.k FROM numbers a JOIN numbers b ON string(a.id) = string(b.id)"
    val computed = 8 + 8 + 20
    assert(memory(query) >= rows(HeldRows(24 + 16 + computed, Seq(32))))
  }

  test("a final aggregate holds its groups, and a partial aggregate none") {
    val grouped = "SELECT id * 2 AS k, sum(id) AS n FROM numbers GROUP BY 1"
    val groups = rows(HeldRows(24 + 16, Seq(32)))
    assert(memory(grouped) == groups)
    val both = decisionsOf(s"SELECT n, count(*) FROM ($grouped) GROUP BY n", oneTask: _*)
    assert(both.map(_.largestTaskMemory.get) == Seq(groups, groups))
  }

  test("an aggregate over a join holds the groups beside the sorted rows") {
    val query = "SELECT /*+ MERGE(a) */ a.id, sum(b.k) FROM numbers a JOIN numbers b ON a.id = b.id GROUP BY a.id"
    val sorted = rows(HeldRows(16 + 8, Seq(32)), HeldRows(24 + 8, Seq(32)))
    assert(memory(query) > sorted + 20000 * (16 + 32) && memory(query) < sorted + 20000 * 200)
  }

  test("a stage without a sort, a final aggregate or a hash join holds no rows") {
    assert(memory("SELECT k FROM numbers DISTRIBUTE BY k") == 0)
  }

  test("a sort gets as many tasks as its memory needs, and the reason has the numbers") {
    val decision = decisionsOf(
      s"SELECT k, id, $window FROM numbers",
      "mode" -> "active",
      "memory.fraction" -> (1e6 / taskMemory).toString,
      "adaptiveWrites" -> "false"
    ).last
    assert(decision.clamps == Seq("memory") && decision.parallelism == 4)
    assert(
      decision.reason.endsWith("raised as the rows need 2 MiB of memory and each task may fill 976.6 KiB."),
      decision.reason
    )
    assert(decision.largestTaskMemory.get <= decision.taskMemory.get)
  }

  test("the reason names the memory of a task that does not fit") {
    val decision = decisionsOf(
      "SELECT id, row_number() OVER (PARTITION BY id % 2 ORDER BY id) AS n FROM numbers",
      "memory.fraction" -> (1e5 / taskMemory).toString
    ).last
    assert(decision.reason.contains("the largest task needs 1"), decision.reason)
    assert(decision.reason.contains("of memory and may fill 97.7 KiB: spread its keys"), decision.reason)
  }

  test("memory sets no limit if it is switched off") {
    val settings = Seq("memory.enabled" -> "false", "memory.fraction" -> "0.0001")
    val decision = decisionsOf(s"SELECT k, id, $window FROM numbers", settings: _*).last
    assert(decision.largestTaskMemory.isEmpty && decision.taskMemory.isEmpty && !decision.clamps.contains("memory"))
  }

  /** Bytes of execution memory of a task slot. */
  private def taskMemory: Double =
    last(s"SELECT k, id, $window FROM numbers").taskMemory.get / 0.9
}

package io.apportion.joins

import io.apportion.SparkSuite
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.joins.{ShuffledHashJoinExec, SortMergeJoinExec}

class PreferHashJoinsSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  override protected def submitTimeConf: Map[String, String] =
    Map("spark.sql.autoBroadcastJoinThreshold" -> "-1", "spark.sql.shuffle.partitions" -> "8")

  /** A slot has about 500 MB, and a table may have a quarter of this part. */
  private val Memory = "memory.fraction"

  private def kinds(joined: DataFrame): Seq[String] = kinds(joined.queryExecution.executedPlan)

  private def kinds(plan: SparkPlan): Seq[String] = collect(plan) {
    case _: ShuffledHashJoinExec => "hash"
    case _: SortMergeJoinExec    => "merge"
  }

  /** How the joins of a query run, from the top. */
  private def joinsOf(query: String, settings: (String, String)*): Seq[String] =
    withSession(settings: _*) { session =>
      val joined = session.sql(query)
      joined.collect()
      kinds(joined)
    }

  private def rowsOf(query: String, settings: (String, String)*): (Seq[Row], Seq[String]) =
    withSession(settings: _*) { session =>
      val joined = session.sql(query)
      (sortedRows(joined), kinds(joined))
    }

  private val simple = "SELECT a.id, b.k FROM numbers a JOIN few b ON a.id = b.id"

  test("a join with a small side uses a hash table, and its reason says how large the table is") {
    assert(joinsOf(simple, "enabled" -> "false") == Seq("merge"))
    assert(joinsOf(simple) == Seq("hash"))
    val reason = decisionOf(simple).reason
    assert(reason.contains("joined by a hash table of at most ") && reason.contains(" instead of sorts (a task has "))
  }

  /** Joins, their columns, and whether the large side may be on the left and on the right. */
  private val kindsOfJoin = Seq(
    ("JOIN", "a.id, b.k", Seq("hash"), Seq("hash")),
    ("LEFT JOIN", "a.id, b.k", Seq("hash"), Seq("merge")),
    ("RIGHT JOIN", "a.id, b.k", Seq("merge"), Seq("hash")),
    ("FULL JOIN", "a.id, b.k", Seq("merge"), Seq("merge")),
    ("LEFT SEMI JOIN", "a.id", Seq("hash"), Seq("merge")),
    ("LEFT ANTI JOIN", "a.id", Seq("hash"), Seq("merge"))
  )

  for ((join, columns, largeLeft, largeRight) <- kindsOfJoin)
    test(s"rows are Spark's, and the table has the smaller side if it has no rows to keep: $join") {
      val keys =
        Seq("a.id = b.id", "a.id = b.id AND a.k = b.k", "string(a.id) = string(b.id)", "a.k = b.k AND a.id > b.id")
      for (on <- keys; (left, right, expected) <- Seq(("numbers", "few", largeLeft), ("few", "numbers", largeRight))) {
        val withNulls = s"(SELECT if(id % 3 = 0, NULL, id) AS id, k FROM $right)"
        val query = s"SELECT $columns FROM $left a $join $withNulls b ON $on"
        val (rows, found) = rowsOf(query)
        assert(found == expected, query)
        assert(rows == rowsOf(query, "enabled" -> "false")._1, query)
      }
    }

  test("a subquery with EXISTS in a condition is joined with a hash table") {
    val query = "SELECT id FROM numbers n WHERE id < 10 OR EXISTS (SELECT 1 FROM few WHERE few.id * 7 = n.id)"
    val (rows, found) = rowsOf(query)
    assert(found == Seq("hash") && rows == rowsOf(query, "enabled" -> "false")._1)
  }

  test("a table that may not fit the memory is sorted, however small it is when stored") {
    // Texts of 200 bytes, which are alike
    def texts(from: String) = s"(SELECT id, repeat(string(id % 3), 200) AS text FROM $from)"
    val query =
      s"SELECT a.text FROM ${texts("numbers")} a LEFT SEMI JOIN ${texts("range(5000)")} b ON a.id = b.id AND a.text <= b.text"
    assert(joinsOf(query, Memory -> "0.1") == Seq("hash"))
    assert(joinsOf(query, Memory -> "0.01") == Seq("merge"))
    assert(decisionOf(query).inputBytes < (1 << 20))
  }

  test("a join is sorted if the query asks for it, and if memory does not count") {
    assert(joinsOf(simple.replace("SELECT", "SELECT /*+ MERGE(b) */")) == Seq("merge"))
    assert(joinsOf(simple, "memory.enabled" -> "false") == Seq("merge"))
    assert(joinsOf(simple, "rules.disabled" -> "PreferHashJoins") == Seq("merge"))
  }

  test("a join stays sorted if the operator above needs its order") {
    val windowed = s"SELECT *, row_number() OVER (PARTITION BY id ORDER BY k) FROM ($simple)"
    assert(joinsOf(windowed) == Seq("merge"))
    val byOther = s"SELECT *, row_number() OVER (PARTITION BY k ORDER BY id) FROM ($simple)"
    assert(joinsOf(byOther) == Seq("hash"))
    // The longest text has no fixed length, so Spark sorts the rows of the aggregate.
    assert(joinsOf(s"SELECT id, max(string(k)) FROM ($simple) GROUP BY id") == Seq("merge"))
    assert(joinsOf(s"SELECT id, max(k) FROM ($simple) GROUP BY id") == Seq("hash"))
    assert(joinsOf(s"$simple SORT BY a.id") == Seq("merge"))
  }

  /** How many shuffles a query writes. */
  private def shufflesOf(query: String, settings: (String, String)*): Int =
    withSession(settings: _*) { session =>
      val result = session.sql(query)
      result.collect()
      val stages =
        collectWithSubqueries(result.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec => stage }
      stages.map(_.shuffle.id).distinct.size
    }

  private val sums = "SELECT b.k, sum(a.id) AS s FROM numbers a JOIN few b ON a.id = b.id GROUP BY b.k"

  test("a join that a subquery needs too stays sorted, so that both run it once") {
    val query = s"WITH sums AS ($sums) SELECT * FROM sums WHERE s > (SELECT avg(s) FROM sums)"
    assert(shufflesOf(query) == shufflesOf(query, "enabled" -> "false"))
    assert(joinsOf(sums) == Seq("hash"))
  }

  test("a join that a subquery of a cached table needs too stays sorted") {
    // Spark 3.5 plans this query again instead of reading the cache.
    since("4.0")
    val query = s"WITH sums AS ($sums) SELECT * FROM sums WHERE s > (SELECT avg(s) FROM sums)"
    withSession() { session =>
      session.sql(s"CACHE TABLE cached AS $query")
      try {
        val read = session.table("cached")
        read.collect()
        val cached = collect(read.queryExecution.executedPlan) { case scan: InMemoryTableScanExec =>
          scan.relation.cachedPlan
        }
        assert(cached.flatMap(kinds) == Seq("merge"))
      } finally session.sql("UNCACHE TABLE cached")
    }
  }

  test("copies of a join are alike, so that they run once") {
    val query = s"WITH sums AS ($sums) SELECT * FROM sums a JOIN sums b ON a.k = b.k + 1"
    // 6.5 kB of memory for tables of 5 kB
    assert(shufflesOf(query, Memory -> "0.00005") == shufflesOf(query, "enabled" -> "false"))
    assert(joinsOf(sums, Memory -> "0.00005") == Seq("hash"))
  }

  test("the joins of a plan share the memory") {
    val three = "SELECT * FROM numbers a JOIN few b USING (id) JOIN range(29) c USING (id)"
    assert(joinsOf(three) == Seq("hash", "hash"))
    // 6.5 kB of memory for tables of 5 kB
    assert(joinsOf(three, Memory -> "0.00005").sorted == Seq("hash", "merge"))
  }
}

class OffHeapJoinsSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  override protected def submitTimeConf: Map[String, String] = Map(
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.memory.offHeap.enabled" -> "true",
    "spark.memory.offHeap.size" -> "1g"
  )

  test("joins are sorted if rows are outside the heap, as tables of long keys are not") {
    val joined = spark.sql("SELECT a.id FROM numbers a JOIN few b ON a.id = b.id")
    joined.collect()
    assert(collect(joined.queryExecution.executedPlan) { case join: SortMergeJoinExec => join }.size == 1)
  }
}

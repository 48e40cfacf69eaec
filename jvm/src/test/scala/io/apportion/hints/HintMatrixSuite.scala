package io.apportion.hints

import io.apportion.report.DecisionLog
import org.scalatest.prop.TableDrivenPropertyChecks._

/**
 * Queries with hints, run for real, and how many tasks each of their stages gets: of all the shuffles whose layout is decided, in
 * no order. The tables are those of [[SparkSuite]]; stages without a hint get 3 tasks by the session's setting.
 */
class HintMatrixSuite extends HintSuite {
  private val settings = Seq(
    "parallelism" -> "3",
    "spark.sql.shuffle.partitions" -> "32",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1"
  )

  // 8 and 16 are hints; 3 is the session's.
  private val cases = Table[String, String, Seq[String]](
    ("case", "query", "stages"),
    (
      "GROUP BY",
      "SELECT /*+ PARALLELISM(8) */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 8")
    ),
    (
      "ORDER BY of the hinted block",
      "SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k ORDER BY k",
      Seq("HashAggregate: 8", "Sort: 8")
    ),
    (
      "ORDER BY a column that is not selected",
      "SELECT /*+ PARALLELISM(8) */ id FROM numbers ORDER BY k",
      Seq("Sort: 8")
    ),
    (
      "ORDER BY an aggregate that is not selected",
      "SELECT /*+ PARALLELISM(8) */ k FROM numbers GROUP BY k ORDER BY sum(id)",
      Seq("HashAggregate: 8", "Sort: 8")
    ),
    (
      "DISTINCT",
      "SELECT /*+ PARALLELISM(8) */ DISTINCT k FROM numbers",
      Seq("HashAggregate: 8")
    ),
    (
      "HAVING",
      "SELECT /*+ PARALLELISM(8) */ k FROM numbers GROUP BY k HAVING count(*) > 5",
      Seq("HashAggregate: 8")
    ),
    (
      "a window",
      "SELECT /*+ PARALLELISM(8) */ id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM numbers",
      Seq("Window: 8")
    ),
    (
      "a window that is filtered outside, which Spark limits before the shuffle",
      """SELECT * FROM (
        |  SELECT /*+ PARALLELISM(8) */ id, row_number() OVER (PARTITION BY k ORDER BY id) AS r FROM numbers) WHERE r = 1""".stripMargin,
      Seq("WindowGroupLimit: 8")
    ),
    (
      "GROUPING SETS",
      "SELECT /*+ PARALLELISM(8) */ k, id % 3, count(*) FROM numbers GROUP BY GROUPING SETS ((k), (id % 3), ())",
      Seq("HashAggregate: 8")
    ),
    (
      "two distinct counts, for which Spark aggregates twice",
      "SELECT /*+ PARALLELISM(8) */ k, count(DISTINCT id), count(DISTINCT id % 7) FROM numbers GROUP BY k",
      Seq("HashAggregate: 8", "HashAggregate: 8")
    ),
    (
      "a join",
      "SELECT /*+ PARALLELISM(8) */ a.id FROM numbers a JOIN few b ON a.k = b.id",
      Seq("ShuffledHashJoin: 8")
    ),
    (
      "a join, an aggregate and a sort",
      "SELECT /*+ PARALLELISM(8) */ b.k, sum(a.id) AS c FROM numbers a JOIN few b ON a.k = b.id GROUP BY b.k ORDER BY c",
      Seq("HashAggregate: 8", "ShuffledHashJoin: 8", "Sort: 8")
    ),
    (
      "a nested block that inherits",
      "SELECT /*+ PARALLELISM(8) */ c, count(*) FROM (SELECT k, count(*) AS c FROM numbers GROUP BY k) GROUP BY c",
      Seq("HashAggregate: 8", "HashAggregate: 8")
    ),
    (
      "a nested block with a hint of its own",
      """SELECT /*+ PARALLELISM(8) */ c, count(*) FROM (
        |  SELECT /*+ PARALLELISM(16) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY c""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 8")
    ),
    (
      "a hint on a nested block alone",
      "SELECT c, count(*) FROM (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY c",
      Seq("HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "a filter that is pushed below the hinted aggregate",
      """SELECT s.c, f.id FROM (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) s
        |JOIN few f ON s.c = f.k WHERE s.k > 10""".stripMargin,
      Seq("HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "a filter that is pushed below the hinted aggregate, in a block with a hint",
      """SELECT /*+ PARALLELISM(16) */ s.c, f.id FROM (
        |  SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) s JOIN few f ON s.c = f.k WHERE s.k > 10""".stripMargin,
      Seq("HashAggregate: 8", "ShuffledHashJoin: 16")
    ),
    (
      "a DISTINCT below a filter",
      "SELECT s.k, f.id FROM (SELECT /*+ PARALLELISM(8) */ DISTINCT id % 97 AS k FROM numbers) s JOIN few f ON s.k + 1 = f.k WHERE s.k > 10",
      Seq("HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "a hinted aggregate with an unused column",
      "SELECT c FROM (SELECT /*+ PARALLELISM(8) */ k, id % 7 AS m, sum(id) AS c FROM numbers GROUP BY k, id % 7) ORDER BY c",
      Seq("HashAggregate: 8", "Sort: 3")
    ),
    (
      "a hinted DISTINCT with a column that the outer block computes with",
      "SELECT m + 1, count(*) FROM (SELECT /*+ PARALLELISM(8) */ DISTINCT k, id % 7 AS m FROM numbers) GROUP BY m + 1",
      Seq("HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "a hinted aggregate whose rows the outer block counts",
      "SELECT count(*) FROM (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k)",
      Seq("HashAggregate: 8")
    ),
    (
      "a hinted aggregate whose outer block groups by an expression of its key",
      "SELECT k % 7, count(*) FROM (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY k % 7",
      Seq("HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "a hinted block whose distributed rows the outer block groups",
      "SELECT k, count(*) FROM (SELECT /*+ PARALLELISM(8) */ k, id FROM numbers DISTRIBUTE BY k) GROUP BY k",
      Seq("HashAggregate: 8")
    ),
    (
      "a block without a hint that distributes the rows of a hinted block",
      """SELECT id, count(*) FROM (SELECT k, id FROM (
        |  SELECT /*+ PARALLELISM(8) */ k, max(id) AS id FROM numbers GROUP BY k) DISTRIBUTE BY id) GROUP BY id""".stripMargin,
      Seq("HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "a hinted block that groups the distributed rows of a hinted block",
      "SELECT /*+ PARALLELISM(16) */ k, count(*) FROM (SELECT /*+ PARALLELISM(8) */ k, id FROM numbers DISTRIBUTE BY k) GROUP BY k",
      Seq("HashAggregate: 16")
    ),
    (
      "an outer block that computes with an aggregate of an inner block",
      "SELECT /*+ PARALLELISM(16) */ c + 1 AS d FROM (SELECT /*+ PARALLELISM(8) */ k, sum(id) AS c FROM numbers GROUP BY k) ORDER BY d",
      Seq("HashAggregate: 8", "Sort: 16")
    ),
    (
      "a join of two hinted blocks, which belongs to the enclosing block",
      """SELECT * FROM (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) a
        |JOIN (SELECT /*+ PARALLELISM(16) */ k, count(*) AS d FROM few GROUP BY k) b ON a.c = b.d""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "an aggregate of a hinted block in the same stage as a join without a hint",
      """SELECT f.id FROM few f JOIN (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) s
        |ON f.id = s.k""".stripMargin,
      Seq("ShuffledHashJoin: 8")
    ),
    (
      "an aggregate of a hinted block in the same stage as a join of a hinted block",
      """SELECT /*+ PARALLELISM(16) */ f.id FROM few f JOIN (
        |  SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) s ON f.id = s.k""".stripMargin,
      Seq("ShuffledHashJoin: 16")
    ),
    (
      "a join in a nested block",
      """SELECT /*+ PARALLELISM(16) */ x, count(*) FROM (
        |  SELECT /*+ PARALLELISM(8) */ a.id % 9 AS x FROM numbers a JOIN few b ON a.k = b.id) GROUP BY x""".stripMargin,
      Seq("HashAggregate: 16", "ShuffledHashJoin: 8")
    ),
    (
      "joins inside and outside, which Spark flattens",
      """SELECT /*+ PARALLELISM(16) */ s.id FROM (
        |  SELECT /*+ PARALLELISM(8) */ a.id, b.k FROM numbers a JOIN few b ON a.k = b.id) s JOIN numbers n ON s.id = n.k""".stripMargin,
      Seq("ShuffledHashJoin: 16", "ShuffledHashJoin: 8")
    ),
    (
      "three levels",
      """SELECT d, count(*) FROM (
        |  SELECT /*+ PARALLELISM(8) */ c, count(*) AS d FROM (
        |    SELECT /*+ PARALLELISM(16) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY c) GROUP BY d""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "UNION ALL of blocks with different hints",
      """SELECT /*+ PARALLELISM(8) */ k, count(*) FROM numbers GROUP BY k
        |UNION ALL SELECT /*+ PARALLELISM(16) */ k, sum(id) FROM numbers GROUP BY k""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 8")
    ),
    (
      "UNION, whose duplicates are dropped in the enclosing block",
      "SELECT /*+ PARALLELISM(8) */ k FROM numbers UNION SELECT /*+ PARALLELISM(16) */ k FROM few",
      Seq("HashAggregate: 3")
    ),
    (
      "UNION in a hinted block",
      "SELECT /*+ PARALLELISM(8) */ * FROM (SELECT k FROM numbers UNION SELECT k FROM few)",
      Seq("HashAggregate: 8")
    ),
    (
      "ORDER BY over a UNION",
      "SELECT /*+ PARALLELISM(8) */ k FROM numbers GROUP BY k UNION ALL SELECT k FROM few ORDER BY k",
      Seq("HashAggregate: 8", "Sort: 3")
    ),
    (
      "INTERSECT, which belongs to the enclosing block",
      """SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k
        |INTERSECT SELECT /*+ PARALLELISM(16) */ k, count(*) FROM few GROUP BY k""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "EXCEPT in a hinted block",
      "SELECT /*+ PARALLELISM(8) */ * FROM (SELECT k FROM numbers EXCEPT SELECT id FROM few)",
      Seq("HashAggregate: 8", "ShuffledHashJoin: 8")
    ),
    (
      "EXCEPT ALL",
      "SELECT /*+ PARALLELISM(8) */ * FROM (SELECT k FROM numbers EXCEPT ALL SELECT id FROM few)",
      Seq("HashAggregate: 8")
    ),
    (
      "a common table expression with a hint, used once",
      "WITH c AS (SELECT /*+ PARALLELISM(8) */ k, count(*) AS n FROM numbers GROUP BY k) SELECT n, count(*) FROM c GROUP BY n",
      Seq("HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "a common table expression that inherits from the block that uses it",
      "WITH c AS (SELECT k, count(*) AS n FROM numbers GROUP BY k) SELECT /*+ PARALLELISM(8) */ n, count(*) FROM c GROUP BY n",
      Seq("HashAggregate: 8", "HashAggregate: 8")
    ),
    (
      "a common table expression with a hint, used twice",
      """WITH c AS (SELECT /*+ PARALLELISM(8) */ k, count(*) AS n FROM numbers GROUP BY k)
        |SELECT /*+ PARALLELISM(16) */ * FROM c a JOIN c b ON a.n = b.k""".stripMargin,
      Seq("HashAggregate: 8", "ShuffledHashJoin: 16")
    ),
    (
      "a common table expression without a hint, used in blocks with different hints",
      """WITH c AS (SELECT k, count(*) AS n FROM numbers GROUP BY k)
        |SELECT * FROM (SELECT /*+ PARALLELISM(8) */ max(k) AS m, n FROM c GROUP BY n) a
        |JOIN (SELECT /*+ PARALLELISM(16) */ k + n AS s FROM c WHERE k > 5) b ON a.m = b.s""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 8", "HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "a common table expression that uses another one",
      """WITH a AS (SELECT /*+ PARALLELISM(8) */ k, count(*) AS n FROM numbers GROUP BY k),
        |  b AS (SELECT /*+ PARALLELISM(16) */ n, count(*) AS m FROM a GROUP BY n)
        |SELECT m, count(*) FROM b GROUP BY m""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "a common table expression that is not deterministic, so that Spark does not repeat it",
      """WITH c AS (SELECT /*+ PARALLELISM(8) */ k, count(*) AS n, rand() AS r FROM numbers GROUP BY k)
        |SELECT /*+ PARALLELISM(16) */ a.k FROM c a JOIN c b ON a.n = b.k""".stripMargin,
      Seq("HashAggregate: 8", "HashAggregate: 8", "Output: 8", "Output: 8", "ShuffledHashJoin: 16")
    ),
    (
      "a recursive common table expression",
      """WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4)
        |SELECT /*+ PARALLELISM(8) */ n % 2, count(*) FROM r GROUP BY n % 2""".stripMargin,
      Seq("HashAggregate: 8")
    ),
    (
      "a scalar subquery with a hint",
      """SELECT k, count(*) FROM numbers
        |WHERE id > (SELECT /*+ PARALLELISM(8) */ max(c) FROM (SELECT count(*) AS c FROM few GROUP BY k)) GROUP BY k""".stripMargin,
      Seq("HashAggregate: 3", "HashAggregate: 8")
    ),
    (
      "a scalar subquery that inherits",
      """SELECT /*+ PARALLELISM(8) */ k, count(*) FROM numbers
        |WHERE id > (SELECT max(c) FROM (SELECT count(*) AS c FROM few GROUP BY k)) GROUP BY k""".stripMargin,
      Seq("HashAggregate: 8", "HashAggregate: 8")
    ),
    (
      "a correlated scalar subquery, which Spark joins in the enclosing block",
      """SELECT /*+ PARALLELISM(16) */ a.id FROM numbers a
        |WHERE a.id > (SELECT /*+ PARALLELISM(8) */ avg(b.id) FROM numbers b WHERE b.k = a.k)""".stripMargin,
      Seq("SortMergeJoin: 16")
    ),
    (
      "an IN subquery",
      """SELECT /*+ PARALLELISM(16) */ id FROM numbers
        |WHERE k IN (SELECT /*+ PARALLELISM(8) */ count(*) FROM few GROUP BY k)""".stripMargin,
      Seq("HashAggregate: 8", "ShuffledHashJoin: 16")
    ),
    (
      "a NOT IN subquery that is never null",
      """SELECT id FROM numbers
        |WHERE k NOT IN (SELECT /*+ PARALLELISM(8) */ count(*) FROM few GROUP BY k)""".stripMargin,
      Seq("HashAggregate: 8")
    ),
    (
      "an EXISTS subquery",
      """SELECT id FROM numbers a WHERE EXISTS (
        |  SELECT /*+ PARALLELISM(8) */ 1 FROM (SELECT id % 9 AS m, count(*) AS c FROM few GROUP BY id % 9) b WHERE b.c = a.k)""".stripMargin,
      Seq("HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "a join in an IN subquery",
      """SELECT count(*), k FROM numbers WHERE id IN (
        |  SELECT /*+ PARALLELISM(8) */ a.id FROM numbers a JOIN few b ON a.k = b.id) GROUP BY k""".stripMargin,
      Seq("HashAggregate: 3", "ShuffledHashJoin: 3", "ShuffledHashJoin: 8")
    ),
    (
      "a self-join of a hinted block",
      """SELECT a.k FROM (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) a
        |JOIN (SELECT /*+ PARALLELISM(8) */ k, count(*) AS c FROM numbers GROUP BY k) b ON a.c = b.k + 1""".stripMargin,
      Seq("HashAggregate: 8", "HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "a lateral subquery",
      """SELECT a.id, s.c FROM few a, LATERAL (
        |  SELECT /*+ PARALLELISM(8) */ b.m, count(*) AS c FROM (SELECT id % 9 AS m, k FROM numbers) b
        |  WHERE b.k < a.id GROUP BY b.m) s""".stripMargin,
      Seq("HashAggregate: 8", "ShuffledHashJoin: 3")
    ),
    (
      "two numbers, between which the target size decides",
      "SELECT /*+ PARALLELISM(4, 32) */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 4")
    ),
    (
      "two numbers and a target size",
      "SELECT /*+ PARALLELISM(4, 32), DATA_VOLUME('100b') */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 32")
    ),
    (
      "two numbers inside a block with one number",
      """SELECT /*+ PARALLELISM(8) */ c, count(*) FROM (
        |  SELECT /*+ PARALLELISM(2, 2) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY c""".stripMargin,
      Seq("HashAggregate: 2", "HashAggregate: 8")
    ),
    (
      "hints of different kinds, which are inherited separately",
      """SELECT /*+ DATA_VOLUME(100) */ c, count(*) FROM (
        |  SELECT /*+ PARALLELISM(1, 16) */ k, count(*) AS c FROM numbers GROUP BY k) GROUP BY c""".stripMargin,
      Seq("HashAggregate: 16", "HashAggregate: 3")
    ),
    (
      "a number above Spark's number of shuffle partitions",
      "SELECT /*+ PARALLELISM(300) */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 300")
    ),
    (
      "two hint comments",
      "SELECT /*+ BROADCAST(x) */ /*+ PARALLELISM(8) */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 8")
    ),
    (
      "two equal hints, of which the first wins",
      "SELECT /*+ PARALLELISM(8), PARALLELISM(16) */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 8")
    ),
    (
      "a wrong hint before a correct one",
      "SELECT /*+ PARALLELISM(0), PARALLELISM(16) */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 16")
    ),
    (
      "a hint after a hint of Spark's",
      "SELECT /*+ SHUFFLE_HASH(b), PARALLELISM(8) */ a.id FROM numbers a JOIN few b ON a.k = b.id",
      Seq("ShuffledHashJoin: 8")
    ),
    (
      "a hint before a hint of Spark's",
      "SELECT /*+ PARALLELISM(8), SHUFFLE_HASH(b) */ a.id FROM numbers a JOIN few b ON a.k = b.id",
      Seq("ShuffledHashJoin: 8")
    ),
    (
      "a hint after a repartition without a number",
      "SELECT /*+ REPARTITION(k), PARALLELISM(8) */ k, id FROM numbers",
      Seq("Output: 8")
    ),
    (
      "a hint before a rebalance without a number",
      "SELECT /*+ PARALLELISM(8), REBALANCE(k) */ k, id FROM numbers",
      Seq("Output: 8")
    ),
    (
      "a hint after a rebalance without a number",
      "SELECT /*+ REBALANCE(k), PARALLELISM(8) */ k, id FROM numbers",
      Seq("Output: 8")
    ),
    (
      "DISTRIBUTE BY",
      "SELECT /*+ PARALLELISM(8) */ k, id FROM numbers DISTRIBUTE BY k",
      Seq("Output: 8")
    ),
    (
      "a hint in lower case",
      "SELECT /*+ parallelism(8) */ k, count(*) FROM numbers GROUP BY k",
      Seq("HashAggregate: 8")
    ),
    (
      "a pivot",
      "SELECT /*+ PARALLELISM(8) */ * FROM (SELECT k, id % 3 AS m, id FROM numbers) PIVOT (sum(id) FOR m IN (0, 1, 2))",
      Seq("HashAggregate: 8", "HashAggregate: 8")
    ),
    (
      "an empty side, for which Spark drops the join",
      "SELECT /*+ PARALLELISM(8) */ a.k, count(*) FROM (SELECT * FROM numbers WHERE id < 0) a FULL JOIN few b ON a.k = b.k GROUP BY a.k",
      Seq("HashAggregate: 8", "HashAggregate: 8")
    )
  )

  forAll(cases) { (name, query, expected) =>
    test(s"stages get the tasks of their hints: $name") {
      if (name == "a recursive common table expression") since("4.1")
      withSession(settings: _*) { session =>
        val (hinted, plain) = (session.sql(query), session.sql(withoutHints(query)))
        assert(shape(hinted.queryExecution.optimizedPlan) == shape(plain.queryExecution.optimizedPlan))
        assert(shape(hinted.queryExecution.executedPlan) == shape(plain.queryExecution.executedPlan))

        val rows = sortedRows(hinted)
        assert(stages(DecisionLog.of(session).all) == expected.sorted)
        if (!query.contains("rand()")) assert(rows == sortedRows(plain))
      }
    }
  }

  /** Without Apportion's hints; Spark's own may change a plan. */
  private def withoutHints(query: String): String =
    query
      .replaceAll("(?i)(PARALLELISM|DATA_VOLUME)\\([^)]*\\),? ?", "")
      .replaceAll("/\\*\\+ *\\*/", "")
      .replaceAll(", *\\*/", "*/")
}

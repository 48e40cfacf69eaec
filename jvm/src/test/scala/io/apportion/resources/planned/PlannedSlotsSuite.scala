package io.apportion.resources.planned

import io.apportion.SparkSuite
import io.apportion.resources.deadlines.TaskSpeed
import org.apache.spark.apportion.Listeners
import org.apache.spark.sql.{AnalysisException, Row}

/** `apportion_slots`, on two slots. */
class PlannedSlotsSuite extends SparkSuite {

  private def slotsOf(query: String, slots: String, settings: (String, String)*): Seq[Row] =
    withSession(settings: _*) { session =>
      val text = query.replace("'", "\\'")
      session
        .sql(
          s"SELECT stage, kind, operator, reads, depth, tasks, requirement, slots FROM apportion_slots('$text'$slots)"
        )
        .collect()
        .toSeq
    }

  private def need(row: Row): (Int, Int, Int) = {
    val its = row.getStruct(6)
    (its.getInt(0), its.getInt(1), its.getInt(2))
  }

  private val join = "SELECT /*+ MERGE(b) */ a.k, count(*) FROM numbers a JOIN numbers b ON a.id = b.id GROUP BY a.k"

  test("stages come after the stages that they read, then slot-sharing groups, then the query") {
    val rows = slotsOf(join, "")
    assert(rows.map(_.getString(1)) == Seq("shuffle", "shuffle", "shuffle", "result", "group", "query"))
    assert(rows.take(4).map(_.getSeq[Int](3)) == Seq(Nil, Nil, Seq(0, 1), Seq(2)))
    assert(rows.take(4).map(_.getInt(4)) == Seq(0, 0, 1, 2))
    assert(rows(2).getString(2) == "SortMergeJoin")
  }

  test("slots are distributed over the stages that can run at once") {
    val rows = slotsOf(join, ", 3")
    assert(rows.take(2).map(_.getLong(5)) == Seq(2, 2), "range(.., 2) has two partitions")
    assert(rows.take(2).map(_.getInt(7)) == Seq(2, 1))
    assert(rows.last.getLong(5) >= 4 && rows.last.getInt(7) == 3)
  }

  test("an explicit parallelism is the requirement of its stage") {
    val rows = slotsOf("SELECT /*+ PARALLELISM(7) */ k, count(*) FROM numbers GROUP BY k", "")
    assert(need(rows(1)) == ((7, 7, 7)) && need(rows.last) == ((7, 7, 7)))
    assert(rows(1).isNullAt(7), "two slots are too few")
  }

  test("a hint sets the requirement of the stages of its block, also without their tasks") {
    val rows = slotsOf("SELECT /*+ SLOTS(1, 12, 40) */ k, count(*) FROM numbers GROUP BY k", "")
    assert(need(rows(1)) == ((1, 12, 40)) && rows(1).getLong(5) <= 8)
  }

  test("the target is the likely number of tasks in active mode, and the maximum in reactive mode") {
    val active = need(slotsOf(join, "", "mode" -> "active", "dataVolumePerTask" -> "32KB")(2))
    val reactive = need(slotsOf(join, "", "mode" -> "reactive", "dataVolumePerTask" -> "32KB")(2))
    assert(active._1 == 1 && active._2 > 1 && active._2 < active._3)
    assert(reactive == ((1, active._3, active._3)))
  }

  test("apportion_slots runs neither a query nor a command") {
    slotsOf("SELECT raise_error('it ran') FROM numbers GROUP BY 1", "")
    slotsOf("CREATE TABLE never_made USING parquet AS SELECT k, count(*) AS n FROM numbers GROUP BY k", "")
    assert(!spark.catalog.tableExists("never_made"))
  }

  test("apportion_slots plans subqueries, unions and broadcasts") {
    def kinds(query: String): Seq[String] = slotsOf(query, "").map(_.getString(1)).dropRight(2)
    assert(kinds("SELECT id FROM numbers WHERE k > (SELECT avg(k) FROM few)") == Seq("shuffle", "subquery", "result"))
    assert(kinds("SELECT n.id FROM numbers n JOIN few f ON n.id = f.id") == Seq("broadcast", "result"))
    assert(slotsOf("SELECT id FROM numbers UNION ALL SELECT id FROM few", "").head.getLong(5) == 4)
  }

  for {
    (arguments, part) <- Seq(
      "" -> "()",
      "5" -> "(5)",
      "'SELECT 1', 0" -> "0)",
      "'SELECT 1', 'many'" -> "many",
      "'a', 1, 2" -> "2)",
      "'a', 1, 'soon'" -> "soon",
      "'a', 1, '10 min', 2" -> "2)"
    )
  } test(s"wrong arguments are refused: apportion_slots($arguments)") {
    val refused = intercept[Exception](withSession()(_.sql(s"SELECT * FROM apportion_slots($arguments)").collect()))
    assert(refused.getMessage.contains("takes the text of a query") && refused.getMessage.contains(part))
  }

  test("the plan to end in time has the stages of earlier runs, on fewer slots for a later deadline") {
    withSession() { session =>
      session.sql(sleepingQuery.replace("SELECT k", "SELECT /*+ FINISH_WITHIN('1 h') */ k")).collect()
      Listeners.drain(session.sparkContext)
      def planned(within: String): Row = {
        val text = sleepingQuery.replace("'", "\\'")
        session.sql(s"SELECT plan.* FROM apportion_slots('$text', null, '$within') WHERE kind = 'query'").head()
      }
      val (hour, second) = (planned("1 hour"), planned("1 s"))
      assert(hour.getAs[Double]("finish_within") == 3600 && hour.getAs[String]("source") == "earlier runs")
      assert(hour.getAs[Int]("slots") == 1 && hour.getAs[Boolean]("in_time"))
      assert(second.getAs[Int]("slots") >= 1 && second.getAs[Double]("seconds") <= hour.getAs[Double]("seconds"))
      val stages = hour.getAs[scala.collection.Seq[Row]]("stages")
      assert(stages.map(_.getAs[scala.collection.Seq[Int]]("reads")) == Seq(Nil, Seq(0)))
      assert(stages.last.getAs[Double]("start") >= stages.head.getAs[Double]("seconds"))
    }
  }

  test("without a run and a speed, the plan to end in time has no slots") {
    TaskSpeed.inApplication.forget(spark.sparkContext)
    withSession() { session =>
      val plan = session.sql("SELECT plan.* FROM apportion_slots('SELECT sum(id) FROM few', 2, '9 min')").collect().last
      assert(plan.getAs[String]("source") == "unknown" && plan.isNullAt(plan.fieldIndex("slots")))
    }
  }

  test("a query that Spark cannot plan is refused with Spark's error") {
    val refused = intercept[AnalysisException](slotsOf("SELECT nothing FROM numbers", ""))
    assert(refused.getMessage.contains("nothing"))
  }
}

package org.apache.spark.apportion

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode
import io.apportion.SparkSuite
import io.apportion.report.{DecisionEvent, DecisionRecord}
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.SparkSession

/** What happens when the tasks of a decision run, and what the next run makes of it. A sort of 5,000 rows spills. */
class OutcomeSuite extends SparkSuite {
  override protected def generatesCode: Boolean = true

  override protected def submitTimeConf: Map[String, String] =
    Map(
      "spark.shuffle.spill.numElementsForceSpillThreshold" -> "5000",
      "spark.buffer.pageSize" -> "64k"
    )

  private val settings = Seq(
    "mode" -> "active",
    "adaptiveWrites" -> "false",
    "spark.sql.shuffle.partitions" -> "64",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "-1"
  )

  /**
   * The sort gets 100 rows for each row of the shuffle, which its bytes do not show.
   *
   * @param aggregate one for each test, as an application remembers plans without literals
   */
  private def exploded(rows: Int, aggregate: String): String =
    s"""SELECT k, a, n, row_number() OVER (PARTITION BY k ORDER BY n DESC) FROM (
       |  SELECT k, a, explode(sequence(1, 100)) AS n
       |  FROM (SELECT id * 3 AS k, $aggregate AS a FROM numbers WHERE id < $rows GROUP BY 1))""".stripMargin

  /** The decision about the last stage of a query, with its outcome. */
  private def run(session: SparkSession, query: String): DecisionRecord = {
    decisionsOf(session, session.sql(query))
    session.sparkContext.listenerBus.waitUntilEmpty()
    io.apportion.report.DecisionLog.of(session).all.last
  }

  test("a decision has the outcome of its stage") {
    withSession(settings: _*) { session =>
      val decision = run(session, exploded(1000, "count(*)"))
      val outcome = decision.outcome.get
      assert(outcome.spilledBytes > 0 && outcome.peakTaskMemory > 0)
      assert(outcome.longestTaskMillis >= outcome.medianTaskMillis && outcome.medianTaskMillis > 0)
      assert(outcome.failedTasks == 0 && outcome.memoryFailures == 0)
      val column = session.sql("SELECT outcome.spilled_bytes FROM apportion_decisions()").collect().last
      assert(column.getLong(0) == outcome.spilledBytes)
    }
  }

  test("readers of a reused shuffle have the outcomes of their own stages") {
    withSession(settings: _*) { session =>
      val query =
        """WITH t AS (SELECT id % 50 AS k, count(*) AS n FROM numbers GROUP BY 1)
          |SELECT * FROM (SELECT /*+ PARALLELISM(7) */ k FROM t) UNION ALL
          |SELECT * FROM (SELECT /*+ PARALLELISM(3) */ k FROM t)""".stripMargin
      decisionsOf(session, session.sql(query))
      session.sparkContext.listenerBus.waitUntilEmpty()
      val decisions = io.apportion.report.DecisionLog.of(session).all
      assert(decisions.nonEmpty && decisions.forall(_.outcome.isDefined))
    }
  }

  test("a query that spilled gets more tasks in its second run, and spills nothing") {
    withSession(settings :+ ("memory.fraction" -> fractionFor(250000)): _*) { session =>
      val first = run(session, exploded(1001, "sum(id)"))
      assert(first.tasks == 1 && first.outcome.get.spilledBytes > 0)
      val second = run(session, exploded(1001, "sum(id)"))
      assert(second.clamps == Seq("memory") && second.tasks > 8, second.reason)
      assert(second.outcome.get.spilledBytes < first.outcome.get.spilledBytes / 10)
      assert(second.reason.contains("(an earlier run with 1 task spilled "), second.reason)
    }
  }

  test("the event of a decision has the memory that an earlier run measured") {
    withSession(settings :+ ("memory.fraction" -> fractionFor(250000)): _*) { session =>
      run(session, exploded(1004, "avg(id)"))
      val events = mutable.Buffer.empty[JsonNode]
      val listener = new SparkListener {
        override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
          case DecisionEvent(decision) => events += decision
          case _                       =>
        }
      }
      session.sparkContext.addSparkListener(listener)
      val second = run(session, exploded(1004, "avg(id)"))
      session.sparkContext.removeSparkListener(listener)
      val held = events.last.get("inputs").get(0).get("held")
      assert(held.get("per_byte").asDouble * second.largestTaskBytes >= second.largestTaskMemory.get - 1)
    }
  }

  test("after a spill, a run on little data gets few tasks") {
    withSession(settings :+ ("memory.fraction" -> fractionFor(250000)): _*) { session =>
      run(session, exploded(1002, "min(id)"))
      assert(run(session, exploded(1002, "min(id)")).tasks > 8)
      assert(run(session, exploded(20, "min(id)")).tasks <= 2)
    }
  }

  test("27 runs of changing size get the same tasks each time after the first spill") {
    withSession(settings :+ ("memory.fraction" -> fractionFor(250000)): _*) { session =>
      run(session, exploded(1003, "max(id)"))
      val sizes = Seq(1003, 100, 600)
      val tasks = Seq.fill(9)(sizes.map(rows => run(session, exploded(rows, "max(id)")).tasks))
      assert(tasks.distinct.size == 1 && tasks.head.distinct.size > 1, tasks)
    }
  }

  test("tasks that spill as much with more tasks go back to the number for their bytes") {
    withSession(settings :+ ("memory.fraction" -> fractionFor(250000)): _*) { session =>
      // All rows have one of two keys, so more than two tasks do not help.
      val query =
        """SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n) FROM (
          |  SELECT k, explode(sequence(1, 50000)) AS n FROM (SELECT id % 2 AS k, count(*) FROM numbers GROUP BY 1))""".stripMargin
      assert(run(session, query).tasks == 1)
      assert(run(session, query).outcome.get.spilledBytes > 0)
      val third = run(session, query)
      assert(third.tasks == 1 && third.sources("memory").endsWith("more tasks did not help"), third.sources)
    }
  }

  test("a target time gives a slow stage the tasks that its first run shows, and another target other tasks") {
    // One and a half seconds for 30 rows.
    val query = "SELECT k, slow(n) FROM (SELECT id % 30 AS k, count(*) AS n FROM numbers GROUP BY 1)"
    def tasks(seconds: Int): Int = withSession(settings :+ ("targetTaskTime" -> s"${seconds}s"): _*) { session =>
      session.udf.register(
        "slow",
        (n: Long) => {
          Thread.sleep(50)
          n
        }
      )
      val decision = run(session, query)
      if (decision.tasks > 1)
        assert(decision.sources("dataVolumePerTask").startsWith(s"targetTaskTime $seconds s, a task read "))
      decision.tasks
    }
    assert(tasks(1) == 1)
    assert(tasks(1) == 2)
    assert(tasks(4) == 1)
  }

  test("a target time does not replace the target size under a join that multiplies rows") {
    val query =
      """SELECT /*+ BROADCAST(b) */ a.k, reflect('java.lang.Thread', 'sleep', 2L)
        |FROM (SELECT id % 30 AS k, count(*) FROM numbers GROUP BY 1) a JOIN few b ON a.k < b.k""".stripMargin
    withSession(settings :+ ("targetTaskTime" -> "1s"): _*) { session =>
      val sources = Seq.fill(2)(run(session, query).sources("dataVolumePerTask"))
      assert(sources == Seq.fill(2)("minTaskVolume, under a join that multiplies rows"))
    }
  }

  /** Fraction of the memory of a slot that is this number of bytes. */
  private def fractionFor(bytes: Double): String =
    (bytes / Cluster.recentTaskMemory(spark.sparkContext).get._1).toString
}

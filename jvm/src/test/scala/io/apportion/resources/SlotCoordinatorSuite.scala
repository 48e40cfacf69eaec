package io.apportion.resources

import io.apportion.SparkSuite
import io.apportion.decision.ResourceRequirement
import io.apportion.resources.deadlines.QueryCosts
import io.apportion.rules.Logged
import org.apache.spark.apportion.Listeners
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobEnd}
import org.apache.spark.sql.SparkSession
import org.scalatest.concurrent.{Eventually, PatienceConfiguration}
import org.scalatest.time.{Millis, Span}

/** Asks for a third of what a query can use; see the test that names it. */
class ThirdOfMaximum extends RescalingPolicy {
  override def target(load: QueryLoad): Int = load.requirement.max / 3
}

/** Queries and the slots that there are, two in these tests, which nobody can be asked for more of. */
class SlotCoordinatorSuite extends SparkSuite with Eventually {
  private val query = "SELECT k, count(*) FROM numbers GROUP BY k"

  private def changesOf(session: SparkSession): Seq[ResourceChange] = {
    Listeners.drain(session.sparkContext)
    SlotCoordinator.changesOf(session.sparkContext)
  }

  test("a decision has the requirement of its stage and the registered slots") {
    val declared = decisionOf(query, "mode" -> "active", "dataVolumePerTask" -> "16KB")
    assert(declared.requirement.contains(ResourceRequirement(1, declared.tasks, declared.subpartitions)))
    assert(declared.slots.contains(2) && declared.slotsLost == 0)
    assert(decisionOf(query, "parallelism" -> "5").requirement.contains(ResourceRequirement(5, 5, 5)))
    val greedy = decisionOf(query, "mode" -> "reactive")
    assert(greedy.requirement.contains(ResourceRequirement(1, greedy.subpartitions, greedy.subpartitions)))
  }

  test("a hint sets the slots that the stages of its block declare, and names itself as the source") {
    val hinted = decisionOf(query.replace("SELECT", "SELECT /*+ SLOTS(1, 12, 40) */"))
    assert(hinted.requirement.contains(ResourceRequirement(1, 12, 40)))
    assert(hinted.sources("slots") == "hint on the query block, line 1")
    assert(hinted.tasks == decisionOf(query).tasks)
  }

  test("a query does not wait if there are enough slots") {
    withSession("resources.minSlots" -> "2")(session => assert(session.sql(query).collect().length == 1000))
  }

  test(
    "a query below its minimum at the timeout fails with slots and settings in the error, and the session continues"
  ) {
    withSession("resources.minSlots" -> "3", "resources.timeout" -> "1s") { session =>
      val error = intercept[NotEnoughSlots](session.sql(query).collect())
      Seq("needs 3 slots", "have 2", "resources.minSlots", "1.0 seconds", "resources.timeout", "resources.request")
        .foreach(part => assert(error.getMessage.contains(part)))
      session.conf.set("spark.apportion.resources.minSlots", 0L)
      assert(session.sql(query).collect().length == 1000)
    }
  }

  test("a query does not wait with enabled=false") {
    withSession("enabled" -> "false", "resources.minSlots" -> "9", "resources.timeout" -> "1s")(_.sql(query).collect())
  }

  test("a query on a local master does not wait for slots above its minimum, as none can come") {
    withSession("resources.minSlots" -> "1", "resources.stabilization" -> "1d", "resources.timeout" -> "2s") {
      session =>
        session.sql(query).collect()
        assert(!changesOf(session).flatMap(_.phase).contains("stabilizing"))
    }
  }

  test("the resource history has the begin and the end of a query that waits") {
    withSession("resources.minSlots" -> "1") { session =>
      val before = changesOf(session).size
      session.sql(query).collect()
      val phases = changesOf(session).drop(before).filter(_.query.isDefined).flatMap(_.phase)
      assert(phases.head == "running" && phases.last == "ended")
    }
  }

  test("a custom policy sets the target") {
    val own = classOf[ThirdOfMaximum].getName
    withSession("resources.rescaling" -> own, "resources.maxSlots" -> "90", "resources.pollInterval" -> "1s") {
      session =>
        val before = changesOf(session).size
        session.sql(sleepingQuery).collect()
        val targets = changesOf(session).drop(before).flatMap(_.need).map(_.target)
        assert(targets.contains(30))
    }
  }

  test("the tasks of a stage do not replace the target of a custom policy") {
    val settings = Seq(
      "mode" -> "active",
      "parallelism" -> "7",
      "resources.rescaling" -> classOf[ThirdOfMaximum].getName,
      "resources.maxSlots" -> "90",
      "resources.pollInterval" -> "1s"
    )
    withSession(settings: _*) { session =>
      val before = changesOf(session).size
      session.sql(sleepingQuery).collect()
      val targets = changesOf(session).drop(before).flatMap(_.need).map(_.target)
      assert(targets.contains(30) && !targets.contains(7))
    }
  }

  test("a policy that cannot be loaded is logged once, and the minimum still applies") {
    withSession("resources.minSlots" -> "5", "resources.timeout" -> "1s") { session =>
      session.conf.set("spark.apportion.resources.rescaling", "no.such.Policy")
      val lines = Logged.by(classOf[SlotSettings].getName) {
        for (_ <- 1 to 2) intercept[NotEnoughSlots](session.sql(query).collect())
      }
      assert(lines.size == 1)
    }
  }

  test("the error names the minimum that is set, even above the maximum of tasks") {
    withSession("resources.minSlots" -> Int.MaxValue.toString, "resources.timeout" -> "0s") { session =>
      val error = intercept[NotEnoughSlots](session.sql(query).collect())
      assert(error.getMessage.contains(s"needs ${Int.MaxValue} slots"))
    }
  }

  test("a query without a shuffle and a write also wait") {
    withSession("resources.minSlots" -> "3", "resources.timeout" -> "1s") { session =>
      val scan = session.sql("SELECT id FROM numbers WHERE id > 5")
      intercept[NotEnoughSlots](scan.write.format("noop").mode("overwrite").save())
      intercept[NotEnoughSlots](session.sql("SELECT id FROM numbers WHERE id > 5").collect())
    }
  }

  test("EXPLAIN and commands do not wait") {
    withSession("resources.minSlots" -> "3", "resources.timeout" -> "1s") { session =>
      assert(session.sql("EXPLAIN SELECT id FROM numbers WHERE id > 5").collect().length == 1)
      assert(session.sql(s"EXPLAIN $query").collect().length == 1)
      assert(session.sql("SHOW TABLES").collect().length == 2)
      assert(session.sql("SELECT * FROM apportion_resources()").collect().nonEmpty)
    }
  }

  test("a query that ended without an event is dropped after some seconds") {
    withSession("resources.minSlots" -> "1") { session =>
      val coordination = SlotCoordinator.of(session.sparkContext).get
      val ended = 1L << 40
      coordination.await(ended, SlotSettings.of(session.sessionState.conf, session.sparkContext))
      assert(coordination.isTracked(ended))
      val most = PatienceConfiguration.Timeout(Span(SlotCoordinator.LongestDelayMillis * 3, Millis))
      eventually(most)(assert(!coordination.isTracked(ended)))
    }
  }

  test("what a query has cost is known, even if its end is heard late") {
    withSession(deadline: _*) { session =>
      val late = new SparkListener {
        override def onJobEnd(event: SparkListenerJobEnd): Unit = Thread.sleep(2500)
      }
      QueryCosts.inApplication.forget(session.sparkContext)
      session.sparkContext.addSparkListener(late)
      try {
        session.sql(query).collect()
        Listeners.drain(session.sparkContext)
      } finally session.sparkContext.removeSparkListener(late)
      val planned = session.sql(s"SELECT plan.source FROM apportion_slots('$query', null, '1 min')").collect().last
      assert(planned.getString(0) == "earlier runs")
    }
  }

  test("a class that is not a policy is refused when it is set") {
    withSession() { session =>
      for (
        (value, why) <- Seq(
          "no.such.Policy" -> "there is no such class",
          "java.lang.String" -> "it does not extend RescalingPolicy"
        )
      ) {
        val refused =
          intercept[IllegalArgumentException](session.sql(s"SET spark.apportion.resources.rescaling=$value"))
        assert(refused.getMessage.contains(value) && refused.getMessage.contains(why))
      }
      val bounds = intercept[IllegalArgumentException] {
        session.sql("SET spark.apportion.resources.maxSlots=4")
        session.sql("SET spark.apportion.resources.minSlots=5")
      }
      assert(bounds.getMessage.contains("minSlots is 5") && bounds.getMessage.contains("maxSlots is 4"))
    }
  }

  test(
    "the backlog policy requests the slots that read the backlog in time, or the declared target before the first read"
  ) {
    val load =
      QueryLoad(ResourceRequirement(1, 4, 100), 2, waitingBytes = 1000, bytesPerSlotSecond = 10, runningMillis = 1)
    assert(Backlog(finishWithinMillis = 10000).target(load) == 10)
    assert(Backlog(finishWithinMillis = 15000).target(load) == 7)
    assert(Backlog(finishWithinMillis = 10000).target(load.copy(bytesPerSlotSecond = 0)) == 4)
  }

  private val deadline = Seq("resources.rescaling" -> "deadline", "resources.finishWithin" -> "300s")

  test("a query with a deadline shows the deadline, the plan from its last run, and its time") {
    withSession(deadline: _*) { session =>
      session.sql(query).collect()
      val before = changesOf(session).size
      session.sql(query).collect()
      val times = changesOf(session).drop(before).filter(_.query.isDefined).flatMap(_.times)
      assert(times.map(_.within).distinct == Seq(300000))
      val (first, last) = (times.head, times.last)
      assert(first.elapsed < last.elapsed)
      assert(first.planned.exists(millis => millis > 0 && millis < 300000))
    }
  }

  test("a query that has not run before gets a target once bytes have been read") {
    withSession(deadline :+ ("resources.pollInterval" -> "1s"): _*) { session =>
      QueryCosts.inApplication.forget(session.sparkContext)
      val before = changesOf(session).size
      session.sql(sleepingQuery).collect()
      assert(changesOf(session).drop(before).flatMap(_.need).forall(_.target >= 1))
    }
  }

  test("a hint sets the deadline of its query without any setting") {
    withSession() { session =>
      val before = changesOf(session).size
      session.sql(query.replace("SELECT", "SELECT /*+ FINISH_WITHIN('5 min') */")).collect()
      assert(changesOf(session).drop(before).flatMap(_.times).map(_.within).distinct == Seq(300000))
    }
  }

  test("a deadline that cannot be met is logged once, with the slots that help most") {
    withSession() { session =>
      val hinted = sleepingQuery.replace("SELECT k", "SELECT /*+ FINISH_WITHIN('1 s') */ k")
      session.sql(hinted).collect()
      val lines = Logged.by(classOf[SlotCoordinator].getName) {
        session.sql(hinted).collect()
        changesOf(session)
      }
      assert(lines.size == 1)
      assert(lines.head.matches("Query \\d+ cannot end within 1 seconds. On \\d+ slots?, the most that help, .*"))
    }
  }
}

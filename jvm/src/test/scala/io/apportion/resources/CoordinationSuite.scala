package io.apportion.resources

import io.apportion.SparkSuite
import org.apache.spark.apportion.Listeners
import org.apache.spark.sql.SparkSession

/** Asks for a third of what a query can use; see the test that names it. */
class ThirdOfMaximum extends RescalingPolicy {
  override def target(load: QueryLoad): Int = load.requirement.max / 3
}

/** Queries and the slots that there are, two in these tests, which nobody can be asked for more of. */
class CoordinationSuite extends SparkSuite {
  private val query = "SELECT k, count(*) FROM numbers GROUP BY k"

  private def changesOf(session: SparkSession): Seq[ResourceChange] = {
    Listeners.drain(session.sparkContext)
    Coordination.of(session.sparkContext).changes
  }

  test("a decision says what its stage declares and how many slots there were") {
    val declared = decisionOf(query, "mode" -> "active", "dataVolumePerTask" -> "16KB")
    assert(declared.requirement.contains(ResourceRequirement(1, declared.tasks, declared.subpartitions)))
    assert(declared.slots.contains(2) && declared.slotsLost == 0)
    assert(decisionOf(query, "parallelism" -> "5").requirement.contains(ResourceRequirement(5, 5, 5)))
    val greedy = decisionOf(query, "mode" -> "reactive")
    assert(greedy.requirement.contains(ResourceRequirement(1, greedy.subpartitions, greedy.subpartitions)))
  }

  test("enough slots are not waited for") {
    withSession("resources.minSlots" -> "2")(session => assert(session.sql(query).collect().length == 1000))
  }

  test("below the minimum at the timeout the query fails, and says need, have and settings; the session goes on") {
    withSession("resources.minSlots" -> "3", "resources.timeout" -> "1s") { session =>
      val error = intercept[NotEnoughSlots](session.sql(query).collect())
      Seq("needs 3 slots", "have 2", "resources.minSlots", "1.0 seconds", "resources.timeout", "resources.request")
        .foreach(part => assert(error.getMessage.contains(part)))
      session.conf.set("spark.apportion.resources.minSlots", 0L)
      assert(session.sql(query).collect().length == 1000)
    }
  }

  test("with Apportion off nothing is waited for") {
    withSession("enabled" -> "false", "resources.minSlots" -> "9", "resources.timeout" -> "1s")(_.sql(query).collect())
  }

  test("queries begin and end in the history") {
    withSession() { session =>
      val before = changesOf(session).size
      session.sql(query).collect()
      val phases = changesOf(session).drop(before).filter(_.query.isDefined).flatMap(_.phase)
      assert(phases.head == "running" && phases.last == "ended")
    }
  }

  test("a policy of one's own is asked for another target") {
    val slow =
      "SELECT k, count(*) FROM numbers WHERE aggregate(sequence(1, 5000), 0L, (a, x) -> a + x + id) > 0 GROUP BY k"
    val own = classOf[ThirdOfMaximum].getName
    withSession("resources.rescaling" -> own, "resources.maxSlots" -> "90", "resources.pollInterval" -> "1s") {
      session =>
        val before = changesOf(session).size
        session.sql(slow).collect()
        assert(changesOf(session).drop(before).flatMap(_.need).exists(_.target == 30))
    }
  }

  test("a policy that is none is refused where it is set") {
    withSession() { session =>
      for (
        (value, why) <- Seq("no.such.Policy" -> "there is no such class", "java.lang.String" -> "it is no such policy")
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
    "a backlog asks for the slots that read what waits in time, and for what was declared before anything was read"
  ) {
    val load =
      QueryLoad(ResourceRequirement(1, 4, 100), 2, waitingBytes = 1000, bytesPerSlotSecond = 10, runningMillis = 1)
    assert(Backlog(finishWithinMillis = 10000).target(load) == 10)
    assert(Backlog(finishWithinMillis = 15000).target(load) == 7)
    assert(Backlog(finishWithinMillis = 10000).target(load.copy(bytesPerSlotSecond = 0)) == 4)
  }
}

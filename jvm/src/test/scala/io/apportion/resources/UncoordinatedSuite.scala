package io.apportion.resources

import scala.jdk.CollectionConverters._

import io.apportion.SparkSuite
import org.apache.spark.apportion.Listeners

/** Queries that neither wait for slots nor request executors, in an application that never had another. */
class UncoordinatedSuite extends SparkSuite {

  private def threads: Set[String] = Thread.getAllStackTraces.keySet.asScala.map(_.getName).toSet

  test("50 queries leave no coordinator, listener or thread behind, and their decisions have slots") {
    withSession() { session =>
      session.sql("SELECT k, count(*) FROM few GROUP BY k").collect()
      val listeners = Listeners.count(spark.sparkContext)
      for (_ <- 1 to 50) session.sql("SELECT k, count(*) FROM few GROUP BY k").collect()
      Listeners.drain(spark.sparkContext)
      assert(SlotCoordinator.existing(spark.sparkContext).isEmpty)
      assert(Listeners.count(spark.sparkContext) == listeners)
      assert(!threads.exists(_.startsWith("apportion")))
      val decision = decisionOf("SELECT k, count(*) FROM few GROUP BY k")
      assert(decision.slots.contains(2) && decision.slotsLost == 0)
      val changes = SlotCoordinator.changesOf(spark.sparkContext)
      assert(changes.map(_.slots) == Seq(2) && changes.forall(_.query.isEmpty))
    }
  }

  test("the entry and the thread of a query that waits end with it, and other queries are not tracked") {
    withSession("resources.minSlots" -> "1") { session =>
      session.sql("SELECT k, count(*) FROM few GROUP BY k").collect()
    }
    val coordination = SlotCoordinator.existing(spark.sparkContext).get
    val changes = {
      Listeners.drain(spark.sparkContext)
      coordination.changes.size
    }
    withSession()(_.sql("SELECT k, count(*) FROM few GROUP BY k").collect())
    Listeners.drain(spark.sparkContext)
    assert(coordination.tracked == 0 && coordination.changes.size == changes)
    val end = System.nanoTime() + 10000000000L
    while (threads("apportion-resources") && System.nanoTime() < end) Thread.sleep(100)
    assert(!threads("apportion-resources"))
  }

  test("a stopped application gets no coordinator") {
    val stopped = spark.sparkContext
    spark.stop()
    assert(SlotCoordinator.of(stopped).isEmpty && SlotCoordinator.existing(stopped).isEmpty)
  }
}

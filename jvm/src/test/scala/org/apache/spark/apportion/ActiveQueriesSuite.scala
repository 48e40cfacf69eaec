package org.apache.spark.apportion

import java.util.concurrent.{CountDownLatch, TimeUnit}

import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.DurationInt

import io.apportion.SparkSuite
import org.apache.spark.sql.functions.{col, udf}

/** Holds tasks of a query in this JVM until the latch opens. */
object HeldTasks {
  @volatile var open = new CountDownLatch(0)
}

/** Queries that share the two slots of these tests. */
class ActiveQueriesSuite extends SparkSuite {
  private val query = "SELECT k, count(*) FROM numbers GROUP BY k"
  private val small = Seq("dataVolumePerTask" -> "1GB", "minTaskVolume" -> "1B", "mode" -> "reactive")

  private def whileAnotherQueryRuns(body: => Unit): Unit = {
    val held = udf { (n: Long) => HeldTasks.open.await(60, TimeUnit.SECONDS); n }
    HeldTasks.open = new CountDownLatch(1)
    val other = Future(spark.range(0, 1, 1, 1).select(held(col("id"))).collect())(ExecutionContext.global)
    try {
      val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30)
      while (ActiveQueries.names(spark.sparkContext).isEmpty && System.nanoTime() < end) Thread.sleep(10)
      // The share is up to a second old.
      Thread.sleep(1100)
      body
    } finally {
      HeldTasks.open.countDown()
      Await.result(other, 30.seconds)
    }
  }

  test("a query alone fills all slots, and fills its share while another query runs") {
    assert(decisionOf(query, small: _*).tasks == 2)
    whileAnotherQueryRuns {
      assert(decisionOf(query, small: _*).tasks == 1)
      assert(Cluster.shareOfSlots(spark.sparkContext) == 1)
    }
    assert(ActiveQueries.names(spark.sparkContext).isEmpty)
  }

  test("a context that has stopped has no queries") {
    spark.stop()
    assert(ActiveQueries.names(spark.sparkContext).isEmpty)
  }
}

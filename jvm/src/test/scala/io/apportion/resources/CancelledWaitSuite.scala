package io.apportion.resources

import java.util.concurrent.{CompletableFuture, TimeUnit}

import io.apportion.SparkSuite
import io.apportion.rules.Logged
import org.apache.spark.apportion.{Listeners, WaitingJob}
import org.apache.spark.{SparkContext, SparkException}
import org.apache.spark.sql.SparkSession

/** Queries that wait for slots, and all of Spark's ways to cancel a query. */
class CancelledWaitSuite extends SparkSuite {
  private val query = "SELECT k, count(*) FROM numbers GROUP BY k"
  private val waiting = Seq("resources.minSlots" -> "5", "resources.timeout" -> "100s")

  private def sparkContext: SparkContext = spark.sparkContext

  private def eventually(condition: => Boolean): Boolean = {
    val end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30)
    while (!condition && System.nanoTime() < end) Thread.sleep(20)
    condition
  }

  /** Spark ends jobs in a thread of its own. */
  private def assertNoJob(): Unit = assert(eventually(sparkContext.statusTracker.getActiveJobIds().isEmpty))

  /** Runs a query in a thread of its own, and returns when it has the job that it waits with. */
  private def begin(session: SparkSession, sql: String): (Thread, CompletableFuture[Throwable]) = {
    val ended = new CompletableFuture[Throwable]
    val thread = new Thread(() =>
      try {
        SparkSession.setActiveSession(session)
        session.sql(sql).collect()
        ended.complete(null)
      } catch { case failure: Throwable => ended.complete(failure) }
    )
    assertNoJob()
    thread.setDaemon(true)
    thread.start()
    assert(eventually(sparkContext.statusTracker.getActiveStageIds().nonEmpty))
    (thread, ended)
  }

  /** Threads inherit job groups and tags from the one that starts them. */
  private def withQuery(sql: String = query, settings: Seq[(String, String)] = waiting)(prepare: SparkSession => Unit)(
      body: (SparkSession, Thread, CompletableFuture[Throwable]) => Unit
  ): Unit = {
    val session = newSession(settings: _*)
    try {
      prepare(session)
      val (thread, ended) = begin(session, sql)
      body(session, thread, ended)
    } finally {
      sparkContext.clearJobGroup()
      sparkContext.clearJobTags()
      sparkContext.cancelAllJobs()
      Listeners.drain(sparkContext)
    }
  }

  private def isCancelled(way: String, sql: String = query)(prepare: SparkSession => Unit)(
      cancel: SparkSession => Unit
  ): Unit =
    test(s"$way ends the wait at once, with Spark's own error") {
      withQuery(sql)(prepare) { (session, _, ended) =>
        cancel(session)
        val failure = ended.get(10, TimeUnit.SECONDS)
        assert(failure.getClass == classOf[SparkException], failure)
        assert(failure.getMessage.contains("cancelled"))
        Listeners.drain(sparkContext)
        assert(SlotCoordinator.existing(sparkContext).get.tracked == 0)
        assertNoJob()
      }
    }

  test("only a cancelled job ends its query") {
    val cancelled = Seq(
      "Job 3 cancelled part of cancelled job group g",
      "[SPARK_JOB_CANCELLED] Job 3 cancelled as part of cancellation of all jobs SQLSTATE: HY008",
      "Job 3 cancelled because SparkContext was shut down"
    )
    assert(cancelled.forall(text => WaitingJob.isCancellation(new SparkException(text))))
    val others = Seq(
      null,
      "[INTERNAL_ERROR] a rule fails",
      "Task not serializable",
      "Job aborted due to stage failure: a task cancelled its work"
    )
    assert(!others.exists(text => WaitingJob.isCancellation(new SparkException(text))))
  }

  /** A method that sessions have since Spark 4. */
  private def call(session: SparkSession, name: String, arguments: String*): Unit = {
    since("4")
    session.getClass.getMethod(name, arguments.map(_ => classOf[String]): _*).invoke(session, arguments: _*)
    ()
  }

  for (interrupt <- Seq(false, true))
    isCancelled(s"cancelJobGroup (interruptOnCancel $interrupt)")(_ =>
      sparkContext.setJobGroup("some", "a query", interrupt)
    )(_ => sparkContext.cancelJobGroup("some"))

  isCancelled("cancelAllJobs")(_ => ())(_ => sparkContext.cancelAllJobs())

  isCancelled("cancelJobsWithTag")(_ => sparkContext.addJobTag("some"))(_ => sparkContext.cancelJobsWithTag("some"))

  isCancelled("interruptAll")(_ => since("4"))(call(_, "interruptAll"))

  isCancelled("interruptTag")(call(_, "addTag", "some"))(call(_, "interruptTag", "some"))

  isCancelled("cancelJobGroup of a query without a shuffle", "SELECT id FROM numbers WHERE id > 5")(_ =>
    sparkContext.setJobGroup("some", "a query")
  )(_ => sparkContext.cancelJobGroup("some"))

  test("cancelling another job group does not end a wait, but an interrupt does") {
    withQuery()(_ => sparkContext.setJobGroup("mine", "a query")) { (_, thread, ended) =>
      sparkContext.cancelJobGroup("other")
      Thread.sleep(1500)
      assert(!ended.isDone)
      thread.interrupt()
      val causes = Iterator.iterate(ended.get(10, TimeUnit.SECONDS))(_.getCause).takeWhile(_ != null)
      assert(causes.exists(_.isInstanceOf[InterruptedException]))
      Listeners.drain(sparkContext)
      assert(SlotCoordinator.existing(sparkContext).get.tracked == 0)
    }
  }

  test("a query that waits holds no slot, and its job ends quietly at the timeout") {
    val short = Seq("resources.minSlots" -> "5", "resources.timeout" -> "5s")
    val lines = Logged.by("org.apache.spark.scheduler") {
      withQuery(settings = short)(_ => ()) { (_, _, ended) =>
        val stage = sparkContext.statusTracker.getStageInfo(sparkContext.statusTracker.getActiveStageIds().head).get
        assert(stage.numActiveTasks == 0)
        withSession()(other => assert(other.sql(query).collect().length == 1000))
        assert(!ended.isDone)
        assert(ended.get(60, TimeUnit.SECONDS).isInstanceOf[NotEnoughSlots])
        Listeners.drain(sparkContext)
        assertNoJob()
      }
    }
    assert(lines == Nil)
  }
}

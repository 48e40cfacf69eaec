package io.apportion.safety

import scala.collection.mutable

import io.apportion.SparkSuite
import io.apportion.report.{DecisionLog, DecisionRecord}
import org.apache.spark.apportion.Listeners
import org.apache.spark.scheduler.{SparkListener, SparkListenerStageCompleted, SparkListenerTaskEnd}
import org.apache.spark.sql.{Row, SparkSession}
import org.scalacheck.Gen
import org.scalacheck.rng.Seed

/** Random queries with random settings: rows are those of Spark, and what decisions say is what Spark measures. */
class RandomQueriesSuite extends SparkSuite {
  override protected def generatesCode: Boolean = true

  import RandomQueriesSuite._

  private val cases = for {
    query <- RandomQueries.relation(Depth)
    settings <- RandomQueries.settings
  } yield (query, settings)

  for (seed <- 1 to Queries)
    test(s"a random query has Spark's rows, and its decisions have Spark's numbers: seed $seed") {
      val (query, settings) = cases.pureApply(Gen.Parameters.default, Seed(seed.toLong))
      withClue(s"$query\nwith $settings\n") {
        val expected = withSession(settings :+ ("enabled" -> "false"): _*)(rows(_, query))
        withSession(settings: _*) { session =>
          val stages = new Stages
          spark.sparkContext.addSparkListener(stages)
          val decisions =
            try {
              assert(rows(session, query) == expected)
              Listeners.drain(spark.sparkContext)
              DecisionLog.of(session).all
            } finally spark.sparkContext.removeSparkListener(stages)
          checkAll(decisions, stages, hasUnions = query.contains(" ALL "))
        }
      }
    }

  private def rows(session: SparkSession, query: String): Map[Row, Int] =
    session.sql(query).collect().groupBy(identity).map { case (row, same) => row -> same.length }

  private def checkAll(decisions: Seq[DecisionRecord], stages: Stages, hasUnions: Boolean): Unit =
    for {
      (stage, ofStage) <- decisions.filter(_.outcome.isDefined).groupBy(_.outcome.get.stage)
      read = stages.read.getOrElse(stage, Nil)
      _ = assert(read.size == stages.tasks(stage))
    } withClue(s"${ofStage.map(_.reason)} of a stage whose tasks read ${read.map(_.bytes)}: ") {
      // A union, which EXCEPT ALL is too, also has tasks for its other inputs.
      val tasks = ofStage.map(_.tasks).sum
      assert(if (hasUnions) tasks <= read.size else tasks == read.size)
      val shuffles = ofStage.filter(_.layout != "files")
      for (decision <- shuffles) {
        assert(decision.levels.isEmpty || decision.blocks.isDefined)
        assert(decision.ranges.toSeq.size <= decision.tasks)
      }
      if (!hasUnions && shuffles.nonEmpty) {
        val twice = shuffles.map(_.bytesReadTwice).sum
        val planned = shuffles.map(decision => (decision.meanTaskBytes + 1) * decision.tasks).sum + twice
        assert(read.map(_.bytes).sum <= planned * Rounded)
        // Of more than 2,000 partitions, Spark knows only the mean size.
        if (shuffles.forall(_.subpartitions <= 2000))
          assert(read.map(_.bytes).max <= (shuffles.map(_.largestTaskBytes).max + twice) * Spread)
      }
      for (outcome <- ofStage.map(_.outcome.get)) {
        assert(outcome.longestTaskMillis == read.map(_.millis).max)
        assert(outcome.peakTaskMemory == read.map(_.peakMemory).max)
        assert(outcome.spilledBytes == read.map(_.spilled).sum && outcome.failedTasks == 0)
      }
    }
}

private object RandomQueriesSuite {

  val Queries = 20

  /** Maximum number of operators, one above the other. */
  val Depth = 2

  /** The mean of the tasks is a whole number, and groups of partitions may have less than a byte per partition. */
  val Rounded = 1.02

  /** The partitions of a group count as equally large. */
  val Spread = 1.25

  final case class TaskMetrics(bytes: Long, millis: Long, peakMemory: Long, spilled: Long)

  /** What Spark says of the stages of a query. */
  final class Stages extends SparkListener {
    val tasks = mutable.Map.empty[Int, Int]
    val read = mutable.Map.empty[Int, Seq[TaskMetrics]]

    override def onStageCompleted(event: SparkListenerStageCompleted): Unit =
      tasks.update(event.stageInfo.stageId, event.stageInfo.numTasks)

    override def onTaskEnd(event: SparkListenerTaskEnd): Unit = {
      val metrics = event.taskMetrics
      val task = TaskMetrics(
        metrics.shuffleReadMetrics.totalBytesRead,
        metrics.executorRunTime,
        metrics.peakExecutionMemory,
        metrics.diskBytesSpilled
      )
      read.update(event.stageId, read.getOrElse(event.stageId, Nil) :+ task)
    }
  }
}

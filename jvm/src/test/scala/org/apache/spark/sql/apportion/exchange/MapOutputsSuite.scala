package org.apache.spark.sql.apportion.exchange

import io.apportion.SparkSuite
import io.apportion.decision.ranges.PartitionTree
import io.apportion.decision.ranges.PartitionTree.BlockRun
import org.apache.spark.{MapOutputTrackerMaster, SparkEnv}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.storage.{BlockId, BlockManagerId, ShuffleBlockId}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}

class MapOutputsSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  override protected def generatesCode: Boolean = true

  test("all blocks of a map output come from one attempt, also if another attempt finishes in between") {
    // With a number that is no power of two, map tasks write groups that several tasks read.
    withSession("parallelism" -> "3") { session =>
      val query = session.sql("SELECT id % 19999, count(*) FROM numbers GROUP BY 1")
      query.collect()
      val exchange = collectFirst(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec =>
        stage.shuffle.asInstanceOf[AdaptiveExchangeExec]
      }.get
      val tree = exchange.goal.tree(exchange.outputPartitioning.numPartitions)
      val outputs = MapOutputs.of(exchange.shuffleId)
      val part = TreePart(1, 2, 0, Int.MaxValue)
      val runs = part.runs(tree)
      def attemptsOf(outputs: MapOutputs, run: BlockRun) = attempts(outputs.blocks(part, run).flatMap(_._2.map(_._1)))
      val shared = runs.filter(run => run.isShared && attemptsOf(outputs, run).nonEmpty)
      assert(shared.nonEmpty && runs.exists(!_.isShared))
      val before = attemptsOf(outputs, shared.head)
      finishAgain(exchange.shuffleId, tree.blocks)
      assert(runs.flatMap(attemptsOf(outputs, _)).toSet == before)
      assert(attemptsOf(MapOutputs.of(exchange.shuffleId), shared.head) != before)
    }
  }

  test("the blocks of all groups around a partition come with their location once") {
    val locations = Seq("1", "2").map(BlockManagerId(_, "host", 7337))
    val tree = PartitionTree(2, 4, 8)
    val statuses = locations.zipWithIndex.map { case (location, map) =>
      MapStatus(location, Array.fill(tree.blocks)(1L), map.toLong)
    }
    val part = TreePart(1, 2, 0, Int.MaxValue)
    val (outputs, runs) = (new MapOutputs(0, statuses.toArray, () => ()), part.runs(tree).filter(_.isShared))
    val blocks = outputs.blocks(part, runs).toSeq
    assert(runs.size > 1 && blocks.map(_._1).sortBy(_.executorId) == locations)
    assert(blocks.map(_._2.size) == Seq.fill(2)(runs.map(run => run.end - run.start).sum))
  }

  private def attempts(blocks: Iterator[BlockId]): Set[Long] = blocks.collect { case block: ShuffleBlockId =>
    block.mapId
  }.toSet

  private def finishAgain(shuffle: Int, blocks: Int): Unit = {
    val tracker = SparkEnv.get.mapOutputTracker.asInstanceOf[MapOutputTrackerMaster]
    val status = MapStatus(SparkEnv.get.blockManager.shuffleServerId, Array.fill(blocks)(1L), 999)
    tracker.registerMapOutput(shuffle, 0, status)
  }
}

package io.apportion.aqe

import io.apportion.conf.SessionPolicy
import io.apportion.decision.{Bytes, Decision, Input, Policy, Ranges, Split}
import org.apache.spark.apportion.MapBlocks
import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan
}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}

/**
 * How a group will be read.
 *
 * @param layouts what the tasks read, by stage id
 */
private[aqe] final case class GroupRead(
    decision: Decision,
    policy: Policy,
    layouts: Map[Int, Seq[ShufflePartitionSpec]]
)

private[aqe] object GroupRead {

  /** The plan with the stages of these groups read so. */
  def applyAll(plan: SparkPlan, reads: Seq[GroupRead]): SparkPlan = {
    val layouts = reads.flatMap(_.layouts).toMap
    val split = reads.filter(_.decision.splits.nonEmpty).flatMap(_.layouts.keys).toSet
    def change(node: SparkPlan): SparkPlan = node match {
      case ShuffleLeaf(ShuffleLeaf(_, _, Some(stage))) =>
        layouts.get(stage.id).fold(node)(AQEShuffleReadExec(stage, _))
      case SkewJoin(_, sides) if sides.flatMap(_.stage).exists(stage => split(stage.id)) =>
        SkewJoin.marked(node).mapChildren(change)
      case _ => node.mapChildren(change)
    }
    change(plan)
  }

  def plan(group: ExchangeGroup, policy: Policy, decide: (Seq[Input], Policy) => Decision): GroupRead = {
    val stages = group.stages.zip(group.bytes)
    val shuffles = stages.zipWithIndex.map { case ((stage, stored), place) =>
      val factor = if (policy.rowBytes) Expansion.of(stage) else 1.0
      val blocks = Option.when(group.splittable.leaves(place))((i: Int) => Bytes.scale(blocksOf(stage, i), factor))
      new Input(Bytes.scale(stored, factor), mapTasks = stage.shuffle.numMappers, blocks = blocks)
    }
    val broadcasts = group.broadcasts.map(stage => new Input(Array(BroadcastBytes.of(stage)), broadcast = true))
    val decision = decide(shuffles ++ broadcasts, policy)
    val layouts = stages.zipWithIndex.map { case ((stage, stored), place) =>
      val bytes = if (policy.rowBytes) decision.ranges.bytesOf(stored) else decision.bytesByInput(place)
      val ranges = RangeSpecs.of(decision.ranges, bytes)
      stage.id -> (if (decision.splits.isEmpty) ranges else withSplits(ranges, decision.splits, stage, stored, place))
    }
    GroupRead(decision, policy, layouts.toMap)
  }

  private def blocksOf(stage: ShuffleQueryStageExec, subpartition: Int): Array[Long] =
    stage.mapStats.fold(Array.empty[Long])(stats => MapBlocks.of(stats.shuffleId, subpartition))

  /** Ranges and parts of split subpartitions, in the order of subpartitions. */
  private def withSplits(
      ranges: Seq[CoalescedPartitionSpec],
      splits: Seq[Split],
      stage: ShuffleQueryStageExec,
      stored: Array[Long],
      place: Int
  ): Seq[ShufflePartitionSpec] = {
    val parts = splits.map { case Split(i, tasks) =>
      lazy val blocks = blocksOf(stage, i)
      i -> tasks.map(_(place).mapTasks).map {
        case Some((from, until)) => PartialReducerPartitionSpec(i, from, until, Bytes.sum(blocks.slice(from, until)))
        case None                => CoalescedPartitionSpec(i, i + 1, stored(i))
      }
    }
    (ranges.map(spec => spec.startReducerIndex -> Seq(spec)) ++ parts).sortBy(_._1).flatMap(_._2)
  }

  /**
   * The policy for a group: what the hints of its block say, then the volume that a write brings with it, as in Spark's own
   * coalescing, then the session's; and minTaskVolume at most under a join that multiplies rows.
   */
  def policy(group: ExchangeGroup, session: SessionPolicy, slots: Option[Int]): Policy = {
    val written = group.leaves match {
      case Seq(leaf) => leaf.shuffle.advisoryPartitionSize
      case _         => None
    }
    val own = session.policy(slots)
    val policy = group.hints.over(written.fold(own)(own.withVolume(_, "advisory size of the write")))
    if (group.multipliesRows && policy.dataVolumePerTask > policy.minTaskVolume)
      policy.withVolume(policy.minTaskVolume, "minTaskVolume, under a join that multiplies rows")
    else policy
  }
}

/** Ranges in Spark's terms. */
object RangeSpecs {

  /** A spec for each range, with the bytes it reads. */
  def of(ranges: Ranges, bytes: Array[Long]): Seq[CoalescedPartitionSpec] =
    IndexedSeq.tabulate(ranges.size)(k => CoalescedPartitionSpec(ranges.starts(k), ranges.ends(k), bytes(k)))
}

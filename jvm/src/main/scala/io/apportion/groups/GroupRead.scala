package io.apportion.groups

import io.apportion.decision.{Decision, Input, Part, Policy, Split}
import io.apportion.decision.ranges.{Bytes, Ranges}
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.MapBlocks
import org.apache.spark.sql.execution.{
  CoalescedPartitionSpec,
  PartialReducerPartitionSpec,
  ShufflePartitionSpec,
  SparkPlan
}
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{REBALANCE_PARTITIONS_BY_COL, REBALANCE_PARTITIONS_BY_NONE}

/**
 * How a group will be read.
 *
 * @param layouts what the tasks read, by stage id
 */
private[apportion] final case class GroupRead(
    decision: Decision,
    policy: Policy,
    layouts: Map[Int, Seq[ShufflePartitionSpec]]
)

private[apportion] object GroupRead {

  /** Why slots are not filled, as the source of the mode. */
  private val ForSize = "not used, as a rebalance or a write asks for a size"

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
      val factor = if (policy.rowBytes) RowSizeRatio.of(stage) else 1.0
      val blocks =
        Option.when(group.splittable.leaves(place))((i: Seq[Int]) => blocksOf(stage, i).map(Bytes.scale(_, factor)))
      new Input(Bytes.scale(stored, factor), mapTasks = stage.shuffle.numMappers, blocks = blocks)
    }
    val broadcasts = group.broadcasts.map(stage => new Input(Array(BroadcastBytes.of(stage)), broadcast = true))
    val decision = decide(shuffles ++ broadcasts, policy)
    val layouts = stages.zipWithIndex.map { case ((stage, stored), place) =>
      val bytes = if (policy.rowBytes) decision.ranges.bytesOf(stored) else decision.bytesByInput(place)
      val ranges = RangeSpecs.of(decision.ranges, bytes)
      val factor = if (policy.rowBytes) RowSizeRatio.of(stage) else 1.0
      stage.id -> (if (decision.splits.isEmpty) ranges else withSplits(ranges, decision.splits, stored, factor, place))
    }
    GroupRead(decision, policy, layouts.toMap)
  }

  private def blocksOf(stage: ShuffleQueryStageExec, subpartitions: Seq[Int]): Seq[Array[Long]] =
    stage.mapStats.fold(subpartitions.map(_ => Array.empty[Long]))(stats =>
      MapBlocks.of(stats.shuffleId, subpartitions)
    )

  /**
   * Ranges and parts of split subpartitions, in the order of subpartitions.
   *
   * @param stored bytes of each subpartition
   * @param factor of the bytes that were decided with to the bytes as stored
   */
  private def withSplits(
      ranges: Seq[CoalescedPartitionSpec],
      splits: Seq[Split],
      stored: Array[Long],
      factor: Double,
      place: Int
  ): Seq[ShufflePartitionSpec] = {
    val parts = splits.map { case Split(i, tasks) =>
      i -> tasks.map(_(place)).map {
        case Part(Some((from, until)), bytes) => PartialReducerPartitionSpec(i, from, until, (bytes / factor).toLong)
        case Part(None, _)                    => CoalescedPartitionSpec(i, i + 1, stored(i))
      }
    }
    (ranges.map(spec => spec.startReducerIndex -> Seq(spec)) ++ parts).sortBy(_._1).flatMap(_._2)
  }

  /**
   * The policy for a group: what the hints of its block say, then the volume that a write brings with it, as in Spark's own
   * coalescing, then the session's; and minTaskVolume at most under a join that multiplies rows. A rebalance and a write with a
   * size of its own are not spread over the slots, as the size of their partitions is the reason why they are there.
   */
  def policy(group: ExchangeGroup, session: SessionPolicy, slots: Option[Int]): Policy = {
    val single = group.leaves match {
      case Seq(leaf) => Some(leaf.shuffle)
      case _         => None
    }
    val written = single.flatMap(_.advisoryPartitionSize)
    val isForSize = written.isDefined || single.map(_.shuffleOrigin).exists {
      case REBALANCE_PARTITIONS_BY_NONE | REBALANCE_PARTITIONS_BY_COL => true
      case _                                                          => false
    }
    val ofSession = session.policy(slots)
    val own = if (isForSize) ofSession.copy(slots = None).named("mode" -> ForSize) else ofSession
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

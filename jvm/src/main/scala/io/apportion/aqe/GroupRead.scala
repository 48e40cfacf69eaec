package io.apportion.aqe

import scala.collection.immutable.ArraySeq

import io.apportion.conf.SessionPolicy
import io.apportion.decision.{Bytes, Decision, Input, Policy, Ranges}
import org.apache.spark.sql.execution.{CoalescedPartitionSpec, ShufflePartitionSpec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec

/**
 * How a group will be read.
 *
 * @param layouts what the tasks read, by stage id
 * @param ranges  the ranges that were apportioned, between the splits that are kept
 */
private[aqe] final case class GroupRead(
    decision: Decision,
    policy: Policy,
    ranges: Ranges,
    splits: SkewSplits,
    layouts: Map[Int, Seq[ShufflePartitionSpec]]
)

private[aqe] object GroupRead {

  /** The plan with the stages of these groups read so. */
  def applyAll(plan: SparkPlan, reads: Seq[GroupRead]): SparkPlan = {
    val layouts = reads.flatMap(_.layouts).toMap
    def change(node: SparkPlan): SparkPlan = node match {
      case ShuffleLeaf(ShuffleLeaf(_, _, Some(stage), _)) =>
        layouts.get(stage.id).fold(node)(AQEShuffleReadExec(stage, _))
      case _ => node.mapChildren(change)
    }
    change(plan)
  }

  def plan(
      group: ExchangeGroup,
      splits: SkewSplits,
      policy: Policy,
      decide: (Seq[Input], Policy) => Decision
  ): GroupRead = {
    val stored = group.bytes.map(without(splits.subpartitions, _))
    val inputs =
      if (policy.rowBytes)
        stored.zip(group.stages).map { case (bytes, stage) => Bytes.scale(bytes, Expansion.of(stage)) }
      else stored
    val broadcasts = group.broadcasts.map(stage => new Input(Array(BroadcastBytes.of(stage)), broadcast = true))
    val shuffles = inputs.zip(group.stages).map { case (bytes, stage) =>
      new Input(bytes, mapTasks = stage.shuffle.numMappers)
    }
    val decision = decide(shuffles ++ broadcasts, policy)
    val ranges = decision.ranges.excluding(splits.subpartitions)
    val isAsDecided = (ranges eq decision.ranges) && (inputs eq stored)
    val bytesByStage = if (isAsDecided) decision.bytesByInput else stored.map(ranges.bytesOf)
    val layouts = group.stages.zip(bytesByStage).zipWithIndex.map { case ((stage, bytes), position) =>
      stage.id -> layout(ranges, bytes, splits, position)
    }
    GroupRead(decision, policy, ranges, splits, layouts.toMap)
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

  private def without(subpartitions: Seq[Int], bytes: Array[Long]): Array[Long] =
    if (subpartitions.isEmpty) bytes
    else {
      val rest = bytes.clone()
      subpartitions.foreach(rest(_) = 0)
      rest
    }

  /** Ranges and kept splits of one stage, in the order of subpartitions. */
  private def layout(ranges: Ranges, bytes: Array[Long], splits: SkewSplits, stage: Int): Seq[ShufflePartitionSpec] = {
    val coalesced = RangeSpecs.of(ranges, bytes)
    if (splits.positions.isEmpty) coalesced
    else {
      val kept = splits.positions.toSeq.map { case (index, tasks) => index -> tasks.map(_(stage)) }
      (coalesced.map(spec => spec.startReducerIndex -> Seq(spec)) ++ kept).sortBy(_._1).flatMap(_._2)
    }
  }
}

/** Ranges in Spark's terms. */
object RangeSpecs {

  /** A spec for each range, with the bytes it reads. */
  def of(ranges: Ranges, bytes: Array[Long]): Seq[CoalescedPartitionSpec] =
    ArraySeq.tabulate(ranges.size)(k => CoalescedPartitionSpec(ranges.starts(k), ranges.ends(k), bytes(k)))
}

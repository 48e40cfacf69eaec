package io.apportion.groups

import io.apportion.decision.{Decision, Input, Part, Policy, SourceKind, Split, ValueSource}
import io.apportion.decision.memory.HeldRows
import io.apportion.decision.ranges.{Bytes, Ranges}
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.MapBlocks
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.exchange.KeySplitExec
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, ShuffleQueryStageExec}

/**
 * Planned read of a group of shuffles.
 *
 * @param policy  policy that the decision was made with
 * @param held    for each shuffle, the execution memory for one stored byte
 * @param layouts shuffle partitions or parts that each task reads, by stage id
 * @param keyParts for each task, its part of the keys and the number of parts; empty if no shuffle partition is split by
 *                keys
 */
final case class GroupRead(
    decision: Decision,
    policy: Policy,
    held: Seq[HeldRows],
    layouts: Map[Int, Seq[ShufflePartitionSpec]],
    keyParts: Seq[(Int, Int)] = Nil
)

object GroupRead {

  /** Source of `mode` if a group does not fill the task slots. */
  private val ForSize =
    ValueSource(SourceKind.RequestedSize, "not used, as a rebalance or a write asks for a partition size")

  private val OfWrite = ValueSource(SourceKind.Write, "advisory size of the write")

  /** Puts the layouts of these groups into a plan. Joins of shuffles that are split by map tasks are marked as skew joins. */
  def applyAll(plan: SparkPlan, reads: Seq[GroupRead]): SparkPlan = {
    val byStage = reads.flatMap(read => read.layouts.keys.map(_ -> read)).toMap
    val split = reads.filter(_.decision.splits.exists(!_.byKeys)).flatMap(_.layouts.keys).toSet
    def change(node: SparkPlan): SparkPlan = node match {
      case ShuffleLeaf(ShuffleLeaf(_, _, Some(stage))) => byStage.get(stage.id).fold(node)(readOf(stage, _))
      case SkewJoin(_, sides) if sides.flatMap(_.stage).exists(stage => split(stage.id)) =>
        SkewJoin.marked(node).mapChildren(change)
      case _ => node.mapChildren(change)
    }
    change(plan)
  }

  private def readOf(stage: ShuffleQueryStageExec, read: GroupRead): SparkPlan = {
    val reader = AQEShuffleReadExec(stage, read.layouts(stage.id))
    stage.outputPartitioning match {
      case shuffle: HashPartitioning if read.keyParts.nonEmpty =>
        KeySplitExec.of(shuffle, read.keyParts, reader)
      case _ => reader
    }
  }

  /**
   * Decides how tasks read a group, and translates the decision into Spark's partition specs.
   *
   * @param held for each shuffle, the execution memory for one stored byte
   */
  def plan(
      group: ExchangeGroup,
      held: Seq[HeldRows],
      policy: Policy,
      decide: (Seq[Input], Policy) => Decision
  ): GroupRead = {
    // Ratio of the bytes in the decision to stored bytes
    val factors = group.stages.map(stage => if (policy.rowBytes) InputBytes.rowSizeRatio(stage) else 1.0)
    val stages = group.stages.zip(group.bytes).zip(factors).zipWithIndex
    val shuffles = stages.map { case (((stage, stored), factor), place) =>
      val blocks =
        Option.when(group.splittable.leaves(place))((i: Seq[Int]) => blocksOf(stage, i).map(Bytes.scale(_, factor)))
      new Input(
        Bytes.scale(stored, factor),
        mapTasks = stage.shuffle.numMappers,
        fetched = group.leaves(place).tree.map(_.blocks(stage.shuffle.numMappers)),
        blocks = blocks,
        readTwice =
          ranges => group.leaves(place).tree.fold(0.0)(_.readTwice(ranges).toDouble / Bytes.sum(stored).max(1)),
        held = held(place).dividedBy(factor),
        hasKeys = group.hasKeys
      )
    }
    val broadcasts = group.broadcasts.map(stage => new Input(Array(InputBytes.ofBroadcast(stage)), broadcast = true))
    val decision = decide(shuffles ++ broadcasts, policy)
    val layouts = stages.map { case (((stage, stored), factor), place) =>
      val bytes = if (policy.rowBytes) decision.ranges.bytesOf(stored) else decision.bytesByInput(place)
      val ofRanges = rangeSpecs(decision.ranges, bytes)
      stage.id -> inOrder[ShufflePartitionSpec](decision, ofRanges)(specsOf(_, place, stored, factor))
    }
    val keyParts =
      if (!decision.splits.exists(_.byKeys)) Nil
      else
        inOrder(decision, Seq.fill(decision.ranges.size)(0 -> 1)) { split =>
          split.tasks.indices.map(_ -> split.tasks.size)
        }
    GroupRead(decision, policy, held, layouts.toMap, keyParts)
  }

  /** What each task gets: those of ranges and those of splits, in the order of subpartitions. */
  private def inOrder[T](decision: Decision, ofRanges: Seq[T])(ofSplit: Split => Seq[T]): Seq[T] =
    if (decision.splits.isEmpty) ofRanges
    else {
      val ranges = decision.ranges.starts.toSeq.zip(ofRanges.map(Seq(_)))
      (ranges ++ decision.splits.map(split => split.subpartition -> ofSplit(split))).sortBy(_._1).flatMap(_._2)
    }

  /**
   * Specs of the parts of a split.
   *
   * @param place  index of the shuffle in the group
   * @param stored stored bytes of each subpartition
   * @param factor ratio of the bytes in the decision to stored bytes
   */
  private def specsOf(split: Split, place: Int, stored: Array[Long], factor: Double): Seq[ShufflePartitionSpec] = {
    val i = split.subpartition
    split.tasks.map(_(place)).map {
      case Part(Some((from, until)), bytes) => PartialReducerPartitionSpec(i, from, until, (bytes / factor).toLong)
      case Part(None, _)                    => CoalescedPartitionSpec(i, i + 1, stored(i))
    }
  }

  private def blocksOf(stage: ShuffleQueryStageExec, subpartitions: Seq[Int]): Seq[Array[Long]] =
    stage.mapStats.fold(subpartitions.map(_ => Array.empty[Long]))(MapBlocks.of(_, subpartitions))

  /**
   * Policy for a group. The advisors change the advisory size of a write, which overrides the settings of the session.
   * Spark's own coalescing also prefers the size of the write.
   *
   * A rebalance, or a write with an advisory size, does not fill the task slots: the query asks for partitions of that
   * size. For a write, a table format chose the size, and does not know the memory of a task. So memory limits it.
   *
   * @param bytes bytes of the shuffles, or of the query's inputs before the shuffles are written; 0 if unknown
   */
  def policy(
      group: ExchangeGroup,
      settings: SessionPolicy,
      advisors: Seq[Advisor],
      session: SparkSession,
      slots: Option[Int] = None,
      bytes: => Long = 0
  ): GroupPolicy = {
    val written = group.single.flatMap(_.advisoryPartitionSize)
    val sessionPolicy = settings.policy(slots, InputBytes.inMemory(group.broadcasts), bytes)
    val memory = sessionPolicy.taskMemory.filter(_ => written.isDefined)
    val unadvised =
      if (written.isEmpty && !group.isRebalance) sessionPolicy
      else sessionPolicy.copy(slots = None, taskMemory = memory).withSources("mode" -> ForSize)
    advisors.foldLeft(GroupPolicy(written.fold(unadvised)(unadvised.withVolume(_, OfWrite)))) { (known, advisor) =>
      advisor.advise(group, known, session)
    }
  }

  /** Spark's spec of each range, with the bytes that it reads. */
  def rangeSpecs(ranges: Ranges, bytes: Array[Long]): Seq[CoalescedPartitionSpec] =
    IndexedSeq.tabulate(ranges.size)(k => CoalescedPartitionSpec(ranges.starts(k), ranges.ends(k), bytes(k)))
}

package io.apportion.aqe

import org.apache.spark.sql.execution.{CoalescedPartitionSpec, PartialReducerPartitionSpec, ShufflePartitionSpec}

/**
 * Subpartitions that Spark has split for skew, with the tasks that read their parts. A position holds what one task reads of
 * every stage of a group.
 *
 * @param positions by subpartition: per task, the specs of all stages
 */
private[aqe] final case class SkewSplits(positions: Map[Int, Seq[Seq[ShufflePartitionSpec]]]) {

  def subpartitions: Seq[Int] = positions.keys.toSeq.sorted

  def tasks: Int = positions.values.map(_.size).sum

  def taskBytes: Seq[Long] = positions.values.flatten.map(_.map(SkewSplits.bytes).sum).toSeq
}

private[aqe] object SkewSplits {
  val none: SkewSplits = SkewSplits(Map.empty)

  /** The splits of a group's stages from the layouts of their reads so far, or why these cannot be understood. */
  def of(layouts: Seq[Option[Seq[ShufflePartitionSpec]]]): Either[String, SkewSplits] =
    if (!layouts.flatten.flatten.exists(_.isInstanceOf[PartialReducerPartitionSpec])) Right(none)
    else if (layouts.exists(_.isEmpty)) Left("one of its stages is split for skew and another is not")
    else {
      val positions = layouts.map(_.get).transpose
      val split = positions.filter(_.exists(_.isInstanceOf[PartialReducerPartitionSpec]))
      val bySubpartition = split.groupBy(_.map(subpartition).distinct)
      if (
        layouts.map(_.get.size).distinct.size > 1 || bySubpartition.keys
          .exists(_.size > 1) || bySubpartition.contains(Seq(None))
      )
        Left("its stages are split for skew in a layout that does not match")
      else Right(SkewSplits(bySubpartition.collect { case (Seq(Some(index)), tasks) => index -> tasks }))
    }

  def bytes(spec: ShufflePartitionSpec): Long = spec match {
    case PartialReducerPartitionSpec(_, _, _, size) => size
    case CoalescedPartitionSpec(_, _, size)         => size.getOrElse(0L)
    case _                                          => 0L
  }

  private def subpartition(spec: ShufflePartitionSpec): Option[Int] = spec match {
    case PartialReducerPartitionSpec(index, _, _, _)               => Some(index)
    case CoalescedPartitionSpec(start, end, _) if end == start + 1 => Some(start)
    case _                                                         => None
  }
}

package org.apache.spark.sql.execution.apportion

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec
import org.apache.spark.sql.execution.joins.HashedRelation

/** Sizes of broadcast rows in Spark's hashed relation. It is in a Spark package because the relation is private. */
object BuildRows {
  private val MaxRows = 200000

  /** Limit of the size in memory. The smallest map of long keys already takes 32 MiB (`LongToUnsafeRowMap`). */
  private val MaxBytes = 64L << 20

  private val Widest = TreeNodeTag[Option[Long]]("apportion.widestBuildRow")

  /**
   * Bytes of the largest row, if no two rows have the same keys. Large relations are not read. Spark 3.4 and later keep
   * the relation serialized on the driver (`TorrentBroadcast`). It may have to be read back, which happens only once.
   */
  def widestIfUnique(stage: BroadcastQueryStageExec): Option[Long] = stage.broadcast match {
    case exchange: BroadcastExchangeExec =>
      exchange.getTagValue(Widest).getOrElse {
        val statistics = stage.getRuntimeStatistics
        val isSmall = statistics.rowCount.exists(_ <= MaxRows) && statistics.sizeInBytes <= MaxBytes
        val widest = if (isSmall) widestIn(exchange.executeBroadcast[Any]().value) else None
        exchange.setTagValue(Widest, widest)
        widest
      }
    // An exchange of another engine.
    case _ => None
  }

  private def widestIn(relation: Any): Option[Long] = relation match {
    case hashed: HashedRelation if hashed.keyIsUnique => widestRow(hashed.asReadOnlyCopy())
    case _                                            => None
  }

  /** `None` for relations that cannot list their rows, such as relations with only NULL keys. */
  private def widestRow(relation: HashedRelation): Option[Long] = Try {
    relation.keys().foldLeft(0L) { (widest, key) =>
      relation.getValue(key) match {
        case row: UnsafeRow => widest.max(row.getSizeInBytes.toLong)
        case _              => widest
      }
    }
  }.toOption
}

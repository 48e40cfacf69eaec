package org.apache.spark.sql.execution.apportion

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.exchange.BroadcastExchangeExec
import org.apache.spark.sql.execution.joins.HashedRelation

/** What Spark's hashed relation of broadcast rows tells about a join with them. In a package of Spark, as the relation is private. */
object BuildRows {
  private val MostRows = 200000

  /** In memory, where the smallest map of long keys has 32 MiB already (`LongToUnsafeRowMap`). */
  private val MostBytes = 64L << 20

  private val Widest = TreeNodeTag[Option[Long]]("apportion.widestBuildRow")

  /**
   * The bytes of the largest row if no two rows have the same keys. Spark 3.4 and later keep the relation serialized on the driver
   * (`TorrentBroadcast`), so it may be read back, once. Large relations are not read.
   */
  def widestIfUnique(stage: BroadcastQueryStageExec): Option[Long] = stage.broadcast match {
    case exchange: BroadcastExchangeExec =>
      exchange.getTagValue(Widest).getOrElse {
        val statistics = stage.getRuntimeStatistics
        val isSmall = statistics.rowCount.exists(_ <= MostRows) && statistics.sizeInBytes <= MostBytes
        val widest = if (isSmall) widestIn(exchange.executeBroadcast[Any]().value) else None
        exchange.setTagValue(Widest, widest)
        widest
      }
    // Of another engine.
    case _ => None
  }

  private def widestIn(relation: Any): Option[Long] = relation match {
    case hashed: HashedRelation if hashed.keyIsUnique => widestRow(hashed.asReadOnlyCopy())
    case _                                            => None
  }

  /** None for relations whose rows cannot be listed, such as those of NULL keys alone. */
  private def widestRow(relation: HashedRelation): Option[Long] = Try {
    relation.keys().foldLeft(0L) { (widest, key) =>
      relation.getValue(key) match {
        case row: UnsafeRow => widest.max(row.getSizeInBytes.toLong)
        case _              => widest
      }
    }
  }.toOption
}

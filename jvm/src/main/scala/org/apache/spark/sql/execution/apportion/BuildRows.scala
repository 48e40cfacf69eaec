package org.apache.spark.sql.execution.apportion

import scala.util.Try

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.HashedRelation

/** What Spark's hashed relation of broadcast rows tells about a join with them. In a package of Spark, as the relation is private. */
object BuildRows {
  private val Widest = TreeNodeTag[Option[Long]]("apportion.widestBuildRow")

  /**
   * The bytes of the largest row if no two rows have the same keys. Spark 3.4 and later keep the relation serialized on the driver
   * (`TorrentBroadcast`), so it may be read back, once; relations of more than `mostRows` rows are not read.
   */
  def widestIfUnique(stage: BroadcastQueryStageExec, mostRows: Int): Option[Long] =
    stage.broadcast.getTagValue(Widest).getOrElse {
      val widest =
        if (stage.getRuntimeStatistics.rowCount.forall(_ > mostRows)) None
        else
          stage.broadcast.executeBroadcast[Any]().value match {
            case relation: HashedRelation if relation.keyIsUnique => widestRow(relation.asReadOnlyCopy())
            case _                                                => None
          }
      stage.broadcast.setTagValue(Widest, widest)
      widest
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

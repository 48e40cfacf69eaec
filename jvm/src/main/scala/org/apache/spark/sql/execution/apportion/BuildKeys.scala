package org.apache.spark.sql.execution.apportion

import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec
import org.apache.spark.sql.execution.joins.HashedRelation

/** Whether the keys of broadcast rows are unique: then a join with them multiplies no rows. In a package of Spark, as its relations are private. */
object BuildKeys {
  private val Unique = TreeNodeTag[Boolean]("apportion.uniqueKeys")

  /**
   * What Spark's hashed relation counted. Spark 3.4 and later keep it serialized on the driver (`TorrentBroadcast`), so it may be read
   * back once; relations of more than `mostRows` rows are not read.
   */
  def areUnique(stage: BroadcastQueryStageExec, mostRows: Int): Boolean =
    stage.broadcast.getTagValue(Unique).getOrElse {
      val unique = stage.getRuntimeStatistics.rowCount.exists(_ <= mostRows) &&
        (stage.broadcast.executeBroadcast[Any]().value match {
          case relation: HashedRelation => relation.keyIsUnique
          case _                        => false
        })
      stage.broadcast.setTagValue(Unique, unique)
      unique
    }
}

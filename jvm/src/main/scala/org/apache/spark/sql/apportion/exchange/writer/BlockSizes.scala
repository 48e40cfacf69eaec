package org.apache.spark.sql.apportion.exchange.writer

import io.apportion.util.AnyVersion
import org.apache.spark.scheduler.{CompressedMapStatus, HighlyCompressedMapStatus, MapStatus}
import org.apache.spark.storage.BlockManagerId
import org.roaringbitmap.RoaringBitmap

/**
 * Sizes of the blocks of a map task, for the driver. Spark averages the sizes of more than 2,000 blocks (`MapStatus.apply`).
 * The blocks of a tree differ much in size, so averages would hide large partitions.
 */
private[writer] object BlockSizes {

  /** Memory that the sizes of a shuffle take up at most: as many as those of 8,000 map tasks with 2,000 blocks each. */
  private val MaxBytes = 16L << 20

  /** Memory that a status takes up for its map of sizes, and for each entry of the map. */
  private val BytesOfMap = 512L
  private val BytesOfEntry = 64L

  /**
   * Result of a map task.
   *
   * @param sizes    bytes of each block
   * @param mapTasks number of map tasks of the shuffle
   * @param checksum of all rows, where results have one
   */
  def status(
      sizes: Array[Long],
      mapTasks: Int,
      location: BlockManagerId,
      mapId: Long,
      checksum: Option[Long]
  ): MapStatus = {
    val written = sizes.indices.filter(sizes(_) > 0)
    val asArray = sizes.length.toLong
    val asMap = BytesOfMap + BytesOfEntry * written.size
    val plain = Seq[Any](location, sizes, mapId) ++ checksum
    if (asArray.min(asMap) * mapTasks > MaxBytes) AnyVersion.call(MapStatus, "apply", plain: _*).asInstanceOf[MapStatus]
    else if (asArray <= asMap) AnyVersion.create(MapStatus, classOf[CompressedMapStatus], plain, Nil)
    else {
      val empty = new RoaringBitmap
      empty.add(0L, asArray)
      written.foreach(empty.remove(_))
      val each = written.map(block => block -> MapStatus.compressSize(sizes(block))).toMap
      val fields = Seq[Any](location, written.size, empty, 0L, each, mapId) ++ checksum
      AnyVersion.create(MapStatus, classOf[HighlyCompressedMapStatus], fields, Nil)
    }
  }
}

package org.apache.spark.sql.apportion.exchange.writer

import org.apache.spark.scheduler.{CompressedMapStatus, HighlyCompressedMapStatus, MapStatus}
import org.apache.spark.SPARK_VERSION
import org.apache.spark.storage.BlockManagerId
import org.scalatest.funsuite.AnyFunSuite

class BlockSizesSuite extends AnyFunSuite {
  private val blocks = 20000

  /** The sizes of every `step`-th block are known, to 10 %. */
  private def statusOf(step: Int, mapTasks: Int): (MapStatus, Boolean) = {
    val sizes = Array.tabulate(blocks)(i => if (i % step == 0) 1L + i * i else 0L)
    val checksum = Option.when(SPARK_VERSION >= "4.1")(7L)
    val status = BlockSizes.status(sizes, mapTasks, BlockManagerId("a", "host", 1), 5, checksum)
    assert(status.mapId == 5 && status.location.host == "host")
    val isKnown = sizes.indices.forall { i =>
      val known = status.getSizeForBlock(i)
      known >= sizes(i) && known <= sizes(i) * 1.11 + 1 && (known == 0) == (sizes(i) == 0)
    }
    status -> isKnown
  }

  test("a result has a byte per block if many blocks have rows, and an entry for each of them if few have") {
    val (dense, denseIsKnown) = statusOf(step = 2, mapTasks = 100)
    assert(dense.isInstanceOf[CompressedMapStatus] && denseIsKnown)
    val (sparse, sparseIsKnown) = statusOf(step = 1000, mapTasks = 8000)
    assert(sparse.isInstanceOf[HighlyCompressedMapStatus] && sparseIsKnown)
    assert(statusOf(step = blocks, mapTasks = 1)._2)
  }

  test("Spark averages the sizes of a shuffle that would fill much of the driver's memory") {
    val (averaged, isKnown) = statusOf(step = 2, mapTasks = 1000)
    assert(averaged.isInstanceOf[HighlyCompressedMapStatus] && !isKnown)
  }
}

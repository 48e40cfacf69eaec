package org.apache.spark.apportion

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.internal.config._
import org.apache.spark.io.CompressionCodec
import org.apache.spark.shuffle.sort.SortShuffleManager

/** How tasks of this application fetch shuffles. In Spark's namespace because its conf itself and its codecs are private to it. */
object ShuffleReads {

  /** The class of the shuffle manager if that is not Spark's own, as for a remote shuffle service. */
  def otherManager: Option[String] =
    Option(SparkEnv.get).map(_.shuffleManager.getClass.getName).filter(_ != classOf[SortShuffleManager].getName)

  /**
   * Whether all blocks of a map task that a task reads are one request, if the session lets it. Spark's rows can be relocated, and the
   * other conditions are those of `BlockStoreShuffleReader.fetchContinuousBlocksInBatch`; merged blocks are fetched one by one.
   */
  def inBatch(sparkContext: SparkContext): Boolean = {
    val conf = sparkContext.conf
    otherManager.isEmpty && !conf.get(SHUFFLE_USE_OLD_FETCH_PROTOCOL) && !conf.get(IO_ENCRYPTION_ENABLED) &&
    !conf.get(PUSH_BASED_SHUFFLE_ENABLED) && (!conf.get(SHUFFLE_COMPRESS) || canConcatenate(conf))
  }

  private def canConcatenate(conf: SparkConf): Boolean =
    CompressionCodec.supportsConcatenationOfSerializedStreams(CompressionCodec.createCodec(conf))
}

package org.apache.spark.apportion

import org.apache.spark.{SparkConf, SparkContext, SparkEnv}
import org.apache.spark.internal.config._
import org.apache.spark.io.CompressionCodec
import org.apache.spark.shuffle.sort.SortShuffleManager

/**
 * How tasks of this application fetch shuffles. It is in Spark's namespace because the configuration object and the
 * codecs are private to Spark.
 */
object ShuffleReads {

  /** Class name of the shuffle manager if it is not Spark's own, as with a remote shuffle service. */
  def otherManager: Option[String] =
    Option(SparkEnv.get).map(_.shuffleManager.getClass.getName).filter(_ != classOf[SortShuffleManager].getName)

  /**
   * Whether a task fetches all its blocks of a map task in one request, if the session allows it. The conditions are
   * those of `BlockStoreShuffleReader.fetchContinuousBlocksInBatch`. One is always met: Spark's rows can be relocated.
   * Merged blocks are fetched one by one.
   */
  def inBatch(sparkContext: SparkContext): Boolean = {
    val conf = sparkContext.conf
    otherManager.isEmpty && !conf.get(SHUFFLE_USE_OLD_FETCH_PROTOCOL) && !conf.get(IO_ENCRYPTION_ENABLED) &&
    !conf.get(PUSH_BASED_SHUFFLE_ENABLED) && (!conf.get(SHUFFLE_COMPRESS) || canConcatenate(conf))
  }

  private def canConcatenate(conf: SparkConf): Boolean =
    CompressionCodec.supportsConcatenationOfSerializedStreams(CompressionCodec.createCodec(conf))
}

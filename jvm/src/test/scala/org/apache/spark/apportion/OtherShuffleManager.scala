package org.apache.spark.apportion

import org.apache.spark.SparkConf
import org.apache.spark.shuffle.sort.SortShuffleManager

/** A shuffle manager that is not Spark's, as that of a remote shuffle service. In Spark's namespace because managers are private to it. */
class OtherShuffleManager(conf: SparkConf) extends SortShuffleManager(conf)

package io.apportion.streams

import scala.collection.mutable

import io.apportion.{PythonBridge, SparkSuite}
import org.apache.spark.apportion.Listeners
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}

class StreamTableSuite extends SparkSuite {
  import ClickStream._

  private val events = mutable.Buffer.empty[SparkListenerEvent]
  private val listener = new SparkListener {
    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case stream: StreamEvent => events += stream
      case _                   =>
    }
  }

  test("a reported record is in SQL and on the listener bus") {
    spark.sparkContext.addSparkListener(listener)
    val text = rescale("q").toString
    PythonBridge.reportStream(spark, text)
    val row = spark.sql("SELECT * FROM apportion_streams()").collect().last
    assert(row.getAs[String]("query_id") == "q" && row.getAs[Int]("to_partitions") == 16)
    assert(row.getAs[Long]("pause_millis") == 8200 && row.getAs[Double]("input_rows_per_second") == 3000.0)
    Listeners.drain(spark.sparkContext)
    assert(events.toSeq == Seq(StreamEvent(StreamRecord.parse(text).json)))
  }
}

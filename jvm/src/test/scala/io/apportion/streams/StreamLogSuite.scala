package io.apportion.streams

import org.scalatest.funsuite.AnyFunSuite

/** Records are checked, and few of them are kept. */
class StreamLogSuite extends AnyFunSuite {
  import ClickStream._

  private def refusal(text: String): String = intercept[IllegalArgumentException](StreamRecord.parse(text)).getMessage

  test("fields of a record that are null or missing are null in its row") {
    val row = StreamRecord.parse(batch("q", "trigger_millis" -> null).putNull("backlog_rows").toString).toRow
    assert(row.isNullAt(StreamRecord.schema.fieldIndex("trigger_millis")))
    assert(row.isNullAt(StreamRecord.schema.fieldIndex("backlog_rows")))
    assert(row.getTimestamp(StreamRecord.schema.fieldIndex("at")).toInstant.toString == "2026-03-01T10:00:00.500Z")
  }

  for (
    (change, message) <- Seq[((String, Any), String)](
      ("slots" -> null) -> "field slots of the record of a stream is missing. Allowed: a whole number",
      ("slots" -> "4") -> "field slots of the record of a stream is \"4\". Allowed: a whole number",
      ("slots" -> 2.5) -> "field slots of the record of a stream is 2.5",
      ("partitions" -> (1L << 31)) -> "field partitions of the record of a stream is 2147483648. Allowed: a whole number of at most 2147483647",
      ("input_rows_per_second" -> Double.NaN) -> "field input_rows_per_second of the record of a stream is",
      ("at" -> "yesterday") -> "field at of the record of a stream is \"yesterday\". Allowed: a time in ISO 8601",
      ("event" -> "rescaled") -> "field event of the record of a stream is \"rescaled\". Allowed: batch, rescale, failure, ended",
      ("slot" -> 4) -> "field slot of the record of a stream is unknown. Allowed: one of stream, query_id"
    )
  )
    test(s"a record with ${change._1} = ${change._2} is refused with the name of the field") {
      val text = batch("q", change).toString
      assert(refusal(text).contains(message), refusal(text))
    }

  test("a record that is no JSON object is refused") {
    assert(refusal("[]").contains("must be a JSON object, but it is ARRAY"))
    assert(refusal("{").contains("is not JSON"))
  }

  test("the newest batch of each stream and the other records are kept in their order") {
    val log = new StreamLog
    val records = Seq(batch("a", "batch" -> 1), rescale("a"), batch("b"), batch("a", "batch" -> 2), rescale("b"))
      .map(StreamRecord(_))
    records.foreach(log.add)
    assert(log.all == records.tail)
  }

  test("a log keeps at most 1,000 streams and 1,000 other records") {
    val log = new StreamLog
    for (i <- 0 until 1500) {
      log.add(StreamRecord(batch("first")))
      log.add(StreamRecord(batch(s"query-$i")))
      log.add(StreamRecord(rescale(s"query-$i")))
    }
    val (batches, others) = log.all.partition(_.event == "batch")
    assert(batches.size == 1000 && others.size == 1000)
    assert(batches.exists(_.query == "first") && others.last.query == "query-1499")
  }
}

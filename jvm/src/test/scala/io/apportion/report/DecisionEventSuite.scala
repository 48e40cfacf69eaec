package io.apportion.report

import scala.jdk.CollectionConverters._
import scala.util.Random

import io.apportion.decision.{Decider, Input, Policy}
import io.apportion.decision.ranges.Ranges
import org.scalatest.funsuite.AnyFunSuite

/** Events of large decisions are short. */
class DecisionEventSuite extends AnyFunSuite {
  private val random = new Random(7)

  private def event(subpartitions: Int, balanced: Boolean = false) = {
    val bytes = Array.fill(subpartitions)(random.nextInt(1 << 20).toLong)
    val policy = Policy(1, balanced = balanced)
    val record = DecisionRecord.of(Decider.decide(Seq(new Input(bytes)), policy), policy)
    (record, bytes, DecisionEvent.of(record, Seq(bytes), Nil).decision)
  }

  test("up to 2,000 subpartitions, an event has the bytes of each and all ranges") {
    val (record, bytes, json) = event(2000)
    assert(json.get("subpartition_bytes").get(0).elements.asScala.map(_.asLong).toSeq == bytes.toSeq)
    assert(json.get("ranges").size == record.ranges.size)
    assert(!json.has("subpartition_bytes_width") && !json.has("ranges_text"))
  }

  for (subpartitions <- Seq(2001, 5000, 32768); balanced <- Seq(false, true))
    test(
      s"$subpartitions subpartitions, ${if (balanced) "balanced" else "even"}: sums keep the total, and ranges are exact"
    ) {
      val (record, bytes, json) = event(subpartitions, balanced)
      val width = json.get("subpartition_bytes_width").asInt
      val sums = json.get("subpartition_bytes").get(0).elements.asScala.map(_.asLong).toArray
      assert(sums.length <= 1024 && sums.toSeq == bytes.toSeq.grouped(width).map(_.sum).toSeq)
      val spread = ShortForm.spread(sums, width, subpartitions)
      assert(spread.length == subpartitions && ShortForm.sums(spread, width).toSeq == sums.toSeq)
      if (record.ranges.size > 2000) {
        assert(json.get("ranges").size == 0)
        assert(ShortForm.ranges(json.get("ranges_text").asText) == record.ranges.toSeq)
      } else assert(json.get("ranges").size == record.ranges.size)
    }

  test("the event of 32,768 subpartitions and tasks is small") {
    val (_, _, json) = event(32768)
    assert(json.toString.length < 20000)
  }

  test("ranges as text") {
    val ranges = Ranges.of(Seq(0 -> 4, 4 -> 8, 8 -> 9, 10 -> 11, 11 -> 12, 12 -> 12))
    assert(ShortForm.text(ranges) == "0-8/4,8-9,10-12/1,12-12")
    assert(ShortForm.ranges(ShortForm.text(ranges)) == ranges.toSeq)
    assert(ShortForm.text(Ranges.none) == "" && ShortForm.ranges("") == Nil)
  }
}

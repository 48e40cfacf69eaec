package io.apportion.report

import scala.jdk.CollectionConverters._
import scala.util.Random

import io.apportion.decision.{Decider, Input, Policy, SourceKind, ValueSource}
import io.apportion.decision.memory.HeldRows
import io.apportion.decision.ranges.{Bytes, PartitionTree, Ranges}
import org.apache.spark.sql.apportion.exchange.TreeStatistics
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.funsuite.AnyFunSuite

/** Events of large decisions are short. */
class DecisionEventSuite extends AnyFunSuite {
  private val random = new Random(7)

  private def event(subpartitions: Int, balanced: Boolean = false) = {
    val bytes = Array.fill(subpartitions)(random.nextInt(1 << 20).toLong)
    val policy = Policy(1, balanced = balanced)
    val record = DecisionRecord.of(Decider.decide(Seq(new Input(bytes)), policy), policy)
    val shuffle = ShuffleFields(bytes, None, rangePartitioned = false, None, None, HeldRows.None, None)
    (record, bytes, DecisionEvent.of(ReportedDecision(record, Some(policy)), Seq(shuffle), Nil).decision)
  }

  test("an event of 2,000 shuffle partitions has the bytes of each partition and all ranges") {
    val (record, bytes, json) = event(2000)
    assert(json.get("subpartition_bytes").get(0).elements.asScala.map(_.asLong).toSeq == bytes.toSeq)
    assert(json.get("ranges").size == record.ranges.size)
    assert(!json.has("subpartition_bytes_width") && !json.has("ranges_text"))
  }

  for (subpartitions <- Seq(2001, 5000, 32768); balanced <- Seq(false, true))
    test(
      s"an event of $subpartitions shuffle partitions in ${if (balanced) "balanced" else "even"} ranges keeps total and ranges"
    ) {
      val (record, bytes, json) = event(subpartitions, balanced)
      val width = json.get("subpartition_bytes_width").asInt
      val sums = json.get("subpartition_bytes").get(0).elements.asScala.map(_.asLong).toArray
      assert(sums.length <= 1024 && sums.toSeq == bytes.toSeq.grouped(width).map(_.sum).toSeq)
      val spread = ShortForm.spread(sums, width, subpartitions)
      assert(spread.length == subpartitions && Bytes.sumRuns(spread, width).toSeq == sums.toSeq)
      if (record.ranges.size > 2000) {
        assert(json.get("ranges").size == 0)
        assert(ShortForm.ranges(json.get("ranges_text").asText) == record.ranges.toSeq)
      } else assert(json.get("ranges").size == record.ranges.size)
    }

  test("the thread that plans makes no JSON, and its session has the time zone of the event") {
    var reads = 0
    val shuffles = new IndexedSeq[ShuffleFields] {
      override def length: Int = { reads += 1; 0 }
      override def apply(i: Int): ShuffleFields = throw new IndexOutOfBoundsException
    }
    val record = DecisionRecord.unchanged("Spark keeps it", 4, Array(1L))
    def at(zone: String): DecisionEvent = {
      val conf = new SQLConf
      conf.setConf(SQLConf.SESSION_LOCAL_TIMEZONE, zone)
      SQLConf.withExistingConf(conf)(DecisionEvent.of(ReportedDecision(record, None), shuffles, Nil))
    }
    val events = Seq(at("Asia/Tokyo"), at("America/New_York"))
    assert(reads == 0)
    assert(events.map(_.decision.get("decided_at").asText).distinct.size == 2 && reads > 0)
  }

  test("an event of 32,768 shuffle partitions and tasks is small") {
    val (_, _, json) = event(32768)
    assert(json.toString.length < 20000)
  }

  test("an event has fields for the facts in its sentences") {
    val hinted = Policy(64, minParallelism = 2).withVolume(32, ValueSource(SourceKind.Hint, "hint on the query block"))
    val shuffle = ShuffleFields(
      Array(10L, 20L),
      exchangeMetric = Some(7),
      rangePartitioned = true,
      notSplit = Some("join-type"),
      setBy = Some("adaptive"),
      held = HeldRows(4.5, Seq(0.5)),
      written = Some(new TreeStatistics(0, PartitionTree(1, 2), Array(5L, 12L, 13L)))
    )
    val record = DecisionRecord.of(Decider.decide(Seq(new Input(shuffle.bytes)), hinted), hinted)
    val reported = ReportedDecision(record, Some(hinted), scanMetric = Some(9))
    val json = DecisionEvent.of(reported, Seq(shuffle), Nil).decision
    assert(json.get("source_kinds").toString == """{"dataVolumePerTask":"hint"}""")
    assert(json.get("policy").get("data_volume_per_task").asLong == 32)
    assert(json.get("policy").get("min_parallelism").asInt == 2 && !json.get("policy").has("parallelism"))
    assert(
      json.get("inputs").get(0).toString == """{"exchange_metric":7,"range_partitioned":true,"splittable":false,""" +
        """"not_split":"join-type","held":{"per_byte":4.5,"arrays":[0.5]},"partitions_set_by":"adaptive","groups":[1,2],"bytes_by_level":[5,25]}"""
    )
    assert(json.get("scan_metric").asLong == 9)
  }

  test("ranges are written as text and read back") {
    val ranges = Ranges.of(Seq(0 -> 4, 4 -> 8, 8 -> 9, 10 -> 11, 11 -> 12, 12 -> 12))
    assert(ShortForm.text(ranges) == "0-8/4,8-9,10-12/1,12-12")
    assert(ShortForm.ranges(ShortForm.text(ranges)) == ranges.toSeq)
    assert(ShortForm.text(Ranges.none) == "" && ShortForm.ranges("") == Nil)
  }
}

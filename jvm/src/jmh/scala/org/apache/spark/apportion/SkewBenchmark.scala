package org.apache.spark.apportion

import java.util.concurrent.TimeUnit

import scala.util.Random

import io.apportion.decision.{Decider, Decision, Input, Policy}
import org.apache.spark.scheduler.MapStatus
import org.apache.spark.storage.BlockManagerId
import org.openjdk.jmh.annotations._

/**
 * Deciding how a shuffle of 10,000 map tasks is read, of which 400 of 2,000 subpartitions are skewed: with the bytes of their blocks at
 * hand, reading these, and both. In Spark's namespace because map outputs are private to it.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Array(Mode.AverageTime))
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 8, time = 1)
class SkewBenchmark {
  private val mapTasks = 10000
  private val subpartitions = 2000
  private val skewed = 0 until subpartitions by 5
  private val policy = Policy(dataVolumePerTask = 64L << 20)

  private var outputs: Array[MapStatus] = _
  private var bytes: Array[Long] = _
  private var blocks: Map[Int, Array[Long]] = _

  @Setup def setup(): Unit = {
    val random = new Random(1)
    def size(i: Int): Long = if (i % 5 == 0) 60000L + random.nextInt(90000) else 3000L + random.nextInt(4000)
    outputs = Array.tabulate(mapTasks) { task =>
      MapStatus(BlockManagerId("1", "host", 1), Array.tabulate(subpartitions)(size), task.toLong)
    }
    bytes = Array.tabulate(subpartitions)(i => outputs.map(_.getSizeForBlock(i)).sum)
    blocks = skewed.zip(read(skewed)).toMap
  }

  private def read(places: Seq[Int]): Seq[Array[Long]] = MapBlocks.sizesOf(outputs, places.toArray).get.toSeq

  private def decide(blocks: Seq[Int] => Seq[Array[Long]]): Decision =
    Decider.decide(Seq(new Input(bytes, mapTasks = mapTasks, blocks = Some(blocks))), policy)

  @Benchmark def readBlocks(): Seq[Array[Long]] = read(skewed)

  @Benchmark def decision(): Decision = decide(_.map(blocks))

  @Benchmark def both(): Decision = decide(read(_))
}

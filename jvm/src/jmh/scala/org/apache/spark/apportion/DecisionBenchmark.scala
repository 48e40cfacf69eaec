package org.apache.spark.apportion

import java.util.concurrent.TimeUnit

import scala.util.Random

import io.apportion.decision.{Decider, Decision, Input, Policy}
import io.apportion.groups.GroupRead
import org.apache.spark.MapOutputStatistics
import org.apache.spark.sql.execution.ShufflePartitionSpec
import org.apache.spark.sql.execution.adaptive.ShufflePartitionsUtil
import org.openjdk.jmh.annotations._

/**
 * Deciding how one group of 4 inputs with 100,000 subpartitions each is read, down to the specs that Spark gets: Apportion, beside
 * Spark's own coalescing and a plain sum over the same arrays. In Spark's namespace because map output statistics are private to it.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Array(Mode.AverageTime))
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(2)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 8, time = 1)
class DecisionBenchmark {
  private val inputs = 4
  private val subpartitions = 100000

  /** Many subpartitions a task, or few. */
  @Param(Array("64 MiB", "1 MiB"))
  var volume: String = _

  private var bytes: Seq[Array[Long]] = _
  private var policy: Policy = _
  private var statistics: Seq[Option[MapOutputStatistics]] = _

  @Setup def setup(): Unit = {
    val random = new Random(1)
    // Lognormal sizes around 100 kB, as of a shuffle with many keys and some skew.
    bytes = Seq.fill(inputs)(Array.fill(subpartitions)(math.exp(11.5 + random.nextGaussian()).toLong))
    policy = Policy(dataVolumePerTask = volume.split(' ').head.toLong << 20)
    statistics = bytes.zipWithIndex.map { case (sizes, shuffle) => Some(new MapOutputStatistics(shuffle, sizes)) }
  }

  @Benchmark def plainSum(): Long = {
    var sum = 0L
    bytes.foreach { sizes =>
      var i = 0
      while (i < sizes.length) {
        sum += sizes(i)
        i += 1
      }
    }
    sum
  }

  @Benchmark def decision(): Decision = Decider.decide(bytes.map(new Input(_)), policy)

  @Benchmark def apportion(): Seq[Seq[ShufflePartitionSpec]] = {
    val decision = Decider.decide(bytes.map(new Input(_)), policy)
    decision.bytesByInput.map(GroupRead.rangeSpecs(decision.ranges, _))
  }

  @Benchmark def spark(): Seq[Seq[ShufflePartitionSpec]] =
    ShufflePartitionsUtil.coalescePartitions(
      statistics,
      Seq.fill(inputs)(None),
      advisoryTargetSize = policy.dataVolumePerTask,
      minNumPartitions = 1,
      minPartitionSize = policy.minTaskVolume
    )
}

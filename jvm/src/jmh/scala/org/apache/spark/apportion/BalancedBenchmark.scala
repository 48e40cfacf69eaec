package org.apache.spark.apportion

import java.util.concurrent.TimeUnit

import scala.util.Random

import io.apportion.decision.{Decider, Decision, Input, Policy}
import io.apportion.decision.ranges.Bytes
import org.openjdk.jmh.annotations._

/** What it costs to decide 1,024 balanced ranges of 4 inputs, against a plain sum over the same arrays. */
@State(Scope.Benchmark)
@BenchmarkMode(Array(Mode.AverageTime))
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(2)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 8, time = 1)
class BalancedBenchmark {
  private val policy = Policy(dataVolumePerTask = 64L << 20, parallelism = Some(1024), balanced = true)

  @Param(Array("50000", "100000", "200000"))
  var subpartitions: Int = _

  private var inputs: Seq[Input] = _

  @Setup def setup(): Unit = {
    val random = new Random(1)
    inputs = Seq.fill(4)(new Input(Array.fill(subpartitions)(math.exp(11.5 + random.nextGaussian()).toLong)))
  }

  @Benchmark def plainSum(): Long = {
    var sum = 0L
    inputs.foreach(input => sum += Bytes.sum(input.bytes))
    sum
  }

  @Benchmark def balanced(): Decision = Decider.decide(inputs, policy)
}

package org.apache.spark.apportion

import java.nio.file.{Files, Paths}
import java.util.Locale

import scala.jdk.CollectionConverters._

import org.openjdk.jmh.results.RunResult
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.OptionsBuilder

/** Runs the benchmarks and writes what they measured to docs/benchmarks.md. */
object BenchmarkReport {

  def main(args: Array[String]): Unit = {
    val options = new OptionsBuilder().include(classOf[DecisionBenchmark].getSimpleName).build()
    val results = new Runner(options).run().asScala.toSeq
    Files.writeString(Paths.get("docs/benchmarks.md"), report(results))
  }

  private def report(results: Seq[RunResult]): String = {
    val rows = results.groupBy(_.getParams.getParam("volume")).toSeq.flatMap { case (volume, ofVolume) =>
      val times = ofVolume
        .map(result =>
          (result.getPrimaryResult.getLabel, (result.getPrimaryResult.getScore, result.getPrimaryResult.getScoreError))
        )
        .toMap
      val sum = times("plainSum")._1
      Seq(
        "plainSum" -> "plain sum",
        "decision" -> "Apportion: decision",
        "apportion" -> "Apportion: decision and specs",
        "spark" -> "Spark: coalescing and specs"
      )
        .map { case (benchmark, name) =>
          val (time, error) = times(benchmark)
          Seq(
            volume,
            name,
            text("%.0f ± %.0f", time, error),
            text("%.1f", time / sum)
          )
        }
    }
    s"""# Benchmarks
       |
       |`make bench` measures what it costs to decide how one group of 4 inputs with 100,000 subpartitions each is read, in one run with
       |Spark's own coalescing (`ShufflePartitionsUtil.coalescePartitions`) and a plain sum over the same arrays. Specs are what
       |Spark's shuffle reads are made of. Microseconds on ${sys.runtime.availableProcessors} processors, Java ${sys
        .props("java.version")}.
       |
       |""".stripMargin +
      table(Seq("volume a task", "what", "time", "times the plain sum") +: Seq("---", "---", "---:", "---:") +: rows)
  }

  private def table(rows: Seq[Seq[String]]): String = rows.map(_.mkString("| ", " | ", " |\n")).mkString

  private def text(format: String, numbers: Double*): String =
    String.format(Locale.ROOT, format, numbers.map(Double.box): _*)
}

package org.apache.spark.apportion

import java.nio.file.{Files, Paths}
import java.util.Locale

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.OptionsBuilder

/**
 * Runs the benchmarks and writes what they measured to docs/benchmarks.md; with arguments `decisions`, `balanced`, `skewed`,
 * `scans`, `hints` or `keys`, prints only that section.
 */
object BenchmarkReport {
  private val sections = ListMap(
    "decisions" -> (() => decisions()),
    "balanced" -> (() => balanced()),
    "skewed" -> (() => skewed()),
    "scans" -> (() => scans()),
    "hints" -> (() => hints()),
    "keys" -> (() => keys())
  )

  def main(args: Array[String]): Unit =
    if (args.isEmpty)
      Files.writeString(Paths.get("docs/benchmarks.md"), (title +: sections.values.map(_()).toSeq).mkString("\n"))
    else args.foreach(section => println(sections(section)()))

  private def title: String =
    s"""# Benchmarks
       |
       |As `make bench` measured them on ${sys.runtime.availableProcessors} processors, Java ${sys.props(
        "java.version"
      )}.
       |""".stripMargin

  /** The time and its error, of each benchmark of a class by its name, for each value of its parameter if it has one. */
  private def times(benchmarks: Class[_], parameter: String): Seq[(String, Map[String, (Double, Double)])] = {
    val options = new OptionsBuilder().include(benchmarks.getSimpleName).build()
    val results = new Runner(options).run().asScala.toSeq
    results.groupBy(_.getParams.getParam(parameter)).toSeq.map { case (value, ofValue) =>
      value -> ofValue.map(_.getPrimaryResult).map(r => (r.getLabel, (r.getScore, r.getScoreError))).toMap
    }
  }

  private def balanced(): String = {
    val rows = times(classOf[BalancedBenchmark], "subpartitions").sortBy(_._1.toInt).map { case (n, times) =>
      val ((sum, _), (time, error)) = (times("plainSum"), times("balanced"))
      Seq(n, text("%.0f", sum), text("%.0f ± %.0f", time, error), text("%.1f", time / sum))
    }
    """## Balanced ranges
      |
      |Deciding 1,024 balanced ranges of 4 inputs, against a plain sum over the same arrays in the same run. Microseconds.
      |
      |""".stripMargin +
      table(
        Seq("subpartitions", "plain sum", "decision", "times the plain sum"),
        Seq("---:", "---:", "---:", "---:"),
        rows
      )
  }

  private def decisions(): String = {
    val rows = times(classOf[DecisionBenchmark], "volume").flatMap { case (volume, times) =>
      val sum = times("plainSum")._1
      Seq(
        "plainSum" -> "plain sum",
        "decision" -> "Apportion: decision",
        "apportion" -> "Apportion: decision and specs",
        "spark" -> "Spark: coalescing and specs"
      )
        .map { case (benchmark, name) =>
          val (time, error) = times(benchmark)
          Seq(volume, name, text("%.0f ± %.0f", time, error), text("%.1f", time / sum))
        }
    }
    """## Deciding
      |
      |How one group of 4 inputs with 100,000 subpartitions each is read, in one run with Spark's own coalescing
      |(`ShufflePartitionsUtil.coalescePartitions`) and a plain sum over the same arrays. Specs are what Spark's shuffle reads are
      |made of. Microseconds.
      |
      |""".stripMargin +
      table(Seq("volume a task", "what", "time", "times the plain sum"), Seq("---", "---", "---:", "---:"), rows)
  }

  private def skewed(): String = {
    val all = times(classOf[SkewBenchmark], "").map(_._2).head
    val rows = Seq(
      "readBlocks" -> "reading the bytes of their blocks",
      "decision" -> "deciding, with these at hand",
      "both" -> "both"
    ).map { case (benchmark, name) =>
      val (time, error) = all(benchmark)
      Seq(name, text("%.0f ± %.0f", time, error))
    }
    """## Skewed subpartitions
      |
      |How a shuffle of 10,000 map tasks is read, of which 400 of 2,000 subpartitions are skewed. All cores read the bytes of the blocks.
      |
      |""".stripMargin +
      table(Seq("what", "ms"), Seq("---", "---:"), rows)
  }

  private def scans(): String = {
    val (sparksMillis, results) = ScanBenchmark.run()
    val rows = results.map { result =>
      Seq(result.name, result.tasks.toString, text("%.0f", result.decideMillis), ratio(result.share))
    }
    s"""## Scans
      |
      |Deciding the tasks of a scan of a million parquet files of about 1 MB, against Spark's own planning of that scan: the listing
      |from an index in memory, cutting and packing. Spark's planning took ${text(
        "%.0f",
        sparksMillis
      )} ms. Turn by turn in one
      |session: median of the rounds' ratios, and the quartiles.
      |
      |""".stripMargin +
      table(
        Seq("scan", "tasks", "ms to decide", "share of Spark's planning"),
        Seq("---", "---:", "---:", "---:"),
        rows
      )
  }

  private def hints(): String = {
    val rows = HintBenchmark.run().map { result =>
      Seq(
        result.name,
        text("%.1f", result.plainMillis),
        ratio(result.hinted),
        ratio(result.withoutHints)
      )
    }
    """## Hints
      |
      |Analysis and optimization of queries with a hint in every block, against the same queries without hints; and without hints,
      |with Apportion on against off. Turn by turn in one session: median of the rounds' ratios, and the quartiles.
      |
      |""".stripMargin +
      table(
        Seq("query", "ms without hints", "hinted", "on, no hints"),
        Seq("---", "---:", "---:", "---:"),
        rows
      )
  }

  private def keys(): String = {
    val firstTable = text("%.1f", KeyBenchmark.firstTableMillis)
    val rows = KeyBenchmark.run().map { result =>
      val (seconds, hashSeconds) = (text("%.2f", result.seconds), text("%.2f", result.hashSeconds))
      Seq(s"`${result.function}`", result.rows.toString, seconds, hashSeconds, ratio(result.times))
    }
    s"""## Functions on keys
      |
      |Against Spark's own `hash` of the same key, turn by turn in one session: seconds that one core is busy, making the rows and summing
      |the results included; the rows of the key alone, or its length, are that and no function. Median of the rounds' ratios, and the
      |quartiles. The table of `even_key` for 32,768 tasks took $firstTable ms to make, as the first of its JVM; it is kept.
      |
      |""".stripMargin +
      table(
        Seq("function", "rows", "seconds", "hash", "times as long"),
        Seq("---", "---:", "---:", "---:", "---:"),
        rows
      )
  }

  private def ratio(ratio: Ratio): String =
    text("%.2f (%.2f to %.2f)", ratio.median, ratio.lower, ratio.upper)

  private def table(head: Seq[String], alignment: Seq[String], rows: Seq[Seq[String]]): String =
    (head +: alignment +: rows).map(_.mkString("| ", " | ", " |\n")).mkString

  private def text(format: String, numbers: Double*): String =
    String.format(Locale.ROOT, format, numbers.map(Double.box): _*)
}

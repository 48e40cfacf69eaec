package org.apache.spark.apportion

import java.nio.file.{Files, Paths}
import java.util.Locale

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import io.apportion.policies.PolicyBenchmark
import org.openjdk.jmh.runner.Runner
import org.openjdk.jmh.runner.options.OptionsBuilder

/**
 * Runs the benchmarks and writes the results to docs/benchmarks.md. With arguments, prints only these sections:
 * `decisions`, `balanced`, `skewed`, `scans`, `hints`, `policies` or `keys`.
 */
object BenchmarkReport {
  private val sections = ListMap(
    "decisions" -> (() => decisions()),
    "balanced" -> (() => balanced()),
    "skewed" -> (() => skewed()),
    "scans" -> (() => scans()),
    "hints" -> (() => hints()),
    "policies" -> (() => policies()),
    "keys" -> (() => keys())
  )

  def main(args: Array[String]): Unit =
    if (args.isEmpty)
      Files.writeString(Paths.get("docs/benchmarks.md"), (title +: sections.values.map(_()).toSeq).mkString("\n"))
    else args.foreach(section => println(sections(section)()))

  private def title: String = {
    val (processors, java) = (sys.runtime.availableProcessors, sys.props("java.version"))
    s"""# Cost of deciding
       |
       |The overhead of Apportion itself: decisions, hints, policies and functions on keys. [Results](results.md) has the times of
       |whole queries. `make bench` measured this page on $processors processors, Java $java.
       |""".stripMargin
  }

  /** Time and error of each benchmark of a class, by its name, for each value of the parameter. */
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
      |Microseconds to decide 1,024 balanced ranges of 4 shuffles, and for a plain sum over the same arrays in one run.
      |
      |""".stripMargin +
      table(
        Seq("shuffle partitions", "plain sum", "decision", "times the plain sum"),
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
      |Microseconds to decide how one group of 4 shuffles with 100,000 partitions each is read. The same run
      |measures Spark's own coalescing (`ShufflePartitionsUtil.coalescePartitions`) and a plain sum over the same
      |arrays. Specs are the partition specs of Spark's shuffle reads.
      |
      |""".stripMargin +
      table(
        Seq("target size per task", "measured", "time", "times the plain sum"),
        Seq("---", "---", "---:", "---:"),
        rows
      )
  }

  private def skewed(): String = {
    val all = times(classOf[SkewBenchmark], "").map(_._2).head
    val rows = Seq(
      "readBlocks" -> "reading the bytes of the blocks",
      "decision" -> "deciding, with these bytes known",
      "both" -> "both"
    ).map { case (benchmark, name) =>
      val (time, error) = all(benchmark)
      Seq(name, text("%.0f ± %.0f", time, error))
    }
    """## Skewed partitions
      |
      |The time to decide how a shuffle of 10,000 map tasks is read. 400 of its 2,000 partitions are skewed. All cores
      |read the bytes of the blocks.
      |
      |""".stripMargin +
      table(Seq("measured", "ms"), Seq("---", "---:"), rows)
  }

  private def scans(): String = {
    val (sparksMillis, results) = ScanBenchmark.run()
    val planning = text("%.0f", sparksMillis)
    val rows = results.map { result =>
      Seq(result.name, result.tasks.toString, text("%.0f", result.decideMillis), ratio(result.share))
    }
    s"""## Scans
      |
      |A scan of a million Parquet files of about 1 MB: the time to decide its tasks, divided by the time of Spark's
      |own planning. Spark's planning took $planning ms: it lists the files from an index in memory, cuts and
      |packs them. Both run alternately in one session. Ratios are the median of the rounds, with the quartiles.
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
      |The time of analysis and optimization. *Hinted* compares queries with a hint in every block with the same queries
      |without hints. *On, no hints* compares Apportion on with Apportion off, without hints. All run alternately in one
      |session. Ratios are the median of the rounds, with the quartiles.
      |
      |""".stripMargin +
      table(
        Seq("query", "ms without hints", "hinted", "on, no hints"),
        Seq("---", "---:", "---:", "---:"),
        rows
      )
  }

  private def policies(): String = {
    val rows = PolicyBenchmark.run().map { result =>
      Seq(result.name, text("%.3f", result.meanMillis), text("%.3f", result.slowestMillis))
    }
    """## Policies
      |
      |The time per query to find the rules of a policy file that match, and to apply them. The file has 1,000 rules
      |with these conditions. The queries are the 125 texts of TPC-DS and TPC-H. Each query runs 60 times, and its median
      |counts after the first 20. A rule that matches costs a copy of the plan.
      |
      |""".stripMargin +
      table(
        Seq("conditions of the rules", "ms, mean of the queries", "ms, slowest query"),
        Seq("---", "---:", "---:"),
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
      |The seconds that one core is busy with a function, compared with Spark's own `hash` of the same key. The
      |seconds include making the rows and summing the results. Rows with only the key, or its length, show that
      |part alone. All run alternately in one session. Ratios are the median of the rounds, with the quartiles. The
      |first table of `even_key` in a JVM, for 32,768 tasks, took $firstTable ms to make; it is kept.
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

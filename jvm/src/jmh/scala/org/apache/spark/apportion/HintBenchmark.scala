package org.apache.spark.apportion

import java.nio.file.Files

import scala.util.Random

import io.apportion.ApportionExtension
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.QueryExecution

/**
 * What hints cost in analysis and optimization: the same queries with a hint in every block and without, and without Apportion,
 * turn by turn in one session.
 */
object HintBenchmark {

  /** How much longer the second takes: the median over the rounds, and the quartiles. */
  final case class Ratio(median: Double, lower: Double, upper: Double)

  final case class Result(name: String, plainMillis: Double, hinted: Ratio, withoutHints: Ratio)

  def run(rounds: Int = 40): Seq[Result] = {
    val session = SparkSession
      .builder()
      .master("local[2]")
      .withExtensions(new ApportionExtension)
      .getOrCreate()
    try {
      createTables(session)
      queries.map { case (name, hinted) => measure(session, name, hinted, rounds) }
    } finally session.stop()
  }

  private val Hint = "/*+ PARALLELISM(8) */"

  /** By name, with a hint in every block. */
  private def queries: Seq[(String, String)] =
    Seq(
      "a report: 8 blocks, 3 joins, a common table expression used twice" -> report,
      "10 blocks in a union" -> union(10),
      "50 blocks in a union" -> union(50),
      "200 blocks in a union" -> union(200),
      "10 blocks, one in another" -> nested(10),
      "40 blocks, one in another" -> nested(40)
    )

  private val report =
    s"""WITH monthly AS (
       |  SELECT $Hint s.item, d.month, sum(s.price) AS revenue, count(DISTINCT s.customer) AS customers
       |  FROM sales s JOIN days d ON s.day = d.day WHERE d.year = 2001 GROUP BY s.item, d.month)
       |SELECT $Hint i.brand, a.month, a.revenue, b.revenue AS next, rank() OVER (PARTITION BY i.brand ORDER BY a.revenue DESC) AS place
       |FROM monthly a JOIN monthly b ON a.item = b.item AND b.month = a.month + 1
       |JOIN (SELECT $Hint DISTINCT item, brand FROM items WHERE brand IN (SELECT $Hint brand FROM items WHERE item < 100)) i ON a.item = i.item
       |WHERE a.revenue > (SELECT $Hint avg(revenue) FROM (SELECT $Hint item, sum(price) AS revenue FROM sales GROUP BY item))
       |  AND EXISTS (SELECT $Hint 1 FROM sales s WHERE s.item = a.item AND s.price > 100)
       |ORDER BY i.brand, place LIMIT 100""".stripMargin

  private def union(blocks: Int): String =
    (1 to blocks)
      .map(n => s"SELECT $Hint item, sum(price) AS total FROM sales WHERE day > $n GROUP BY item")
      .mkString(" UNION ALL ")

  private def nested(blocks: Int): String =
    (1 to blocks).foldLeft("SELECT item AS k, customer AS n FROM sales")((inner, n) =>
      s"SELECT $Hint k % $n AS k, count(*) AS n FROM ($inner) GROUP BY k % $n"
    )

  private def createTables(session: SparkSession): Unit = {
    val empty = Files.createTempDirectory("empty").toString
    Map(
      "sales" -> "item INT, day INT, customer INT, price DECIMAL(9, 2)",
      "days" -> "day INT, month INT, year INT",
      "items" -> "item INT, brand STRING"
    ).foreach { case (name, columns) => session.read.schema(columns).parquet(empty).createOrReplaceTempView(name) }
  }

  private def measure(session: SparkSession, name: String, hinted: String, rounds: Int): Result = {
    val plain = hinted.replace(Hint, "")
    val variants = Map[String, () => Double](
      "off" -> (() => time(session, plain, enabled = false)),
      "plain" -> (() => time(session, plain, enabled = true)),
      "hinted" -> (() => time(session, hinted, enabled = true))
    )
    val random = new Random(1)
    val times = (1 to rounds).map(_ => random.shuffle(variants.toSeq).map { case (key, run) => key -> run() }.toMap)
    val measured = times.drop(rounds / 4) // The first ones warm up.
    Result(
      name,
      quantile(measured.map(_("plain")), 0.5),
      ratio(measured.map(round => round("hinted") / round("plain"))),
      ratio(measured.map(round => round("plain") / round("off")))
    )
  }

  private def ratio(ratios: Seq[Double]): Ratio =
    Ratio(quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75))

  private def quantile(values: Seq[Double], share: Double): Double = values.sorted.apply((values.size * share).toInt)

  /** Milliseconds of analysis and optimization. */
  private def time(session: SparkSession, query: String, enabled: Boolean): Double = {
    session.conf.set("spark.apportion.enabled", enabled.toString)
    session.withActive {
      val parsed = session.sessionState.sqlParser.parsePlan(query)
      val start = System.nanoTime()
      new QueryExecution(session, parsed).optimizedPlan
      (System.nanoTime() - start) / 1e6
    }
  }
}

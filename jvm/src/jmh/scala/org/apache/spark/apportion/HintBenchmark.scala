package org.apache.spark.apportion

import org.apache.spark.sql.TpcTables
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.QueryExecution

/**
 * What hints cost in analysis and optimization: the same queries with a hint in every block and without, and without Apportion,
 * turn by turn in one session.
 */
object HintBenchmark {

  /** Analysis and optimization: with hints and without, and with Apportion on and off. */
  def run(): Seq[Result] = Turns.inSession("local[2]") { session =>
    TpcTables.createViews(session)
    measure(session, "all 103 texts of TPC-DS, one after the other", tpcds, rounds = 8) ++
      measure(session, "10 blocks in a union", Seq(union(10)), rounds = 60) ++
      measure(session, "50 blocks in a union", Seq(union(50)), rounds = 40) ++
      measure(session, "200 blocks in a union", Seq(union(200)), rounds = 40) ++
      measure(session, "10 nested blocks", Seq(nested(10)), rounds = 60) ++
      measure(session, "40 nested blocks", Seq(nested(40)), rounds = 60)
  }

  private val Hint = "/*+ PARALLELISM(8) */"

  private def tpcds: Seq[String] = TpcTables.queries.collect {
    case (name, query) if name.startsWith("tpcds") => query.replaceAll("(?i)\\bselect\\b", s"$$0 $Hint")
  }

  private def union(blocks: Int): String =
    (1 to blocks)
      .map(n =>
        s"SELECT $Hint ss_item_sk, sum(ss_list_price) AS total FROM store_sales WHERE ss_quantity > $n GROUP BY ss_item_sk"
      )
      .mkString(" UNION ALL ")

  private def nested(blocks: Int): String =
    (1 to blocks).foldLeft("SELECT ss_item_sk AS k, ss_customer_sk AS n FROM store_sales")((inner, n) =>
      s"SELECT $Hint k % $n AS k, count(*) AS n FROM ($inner) GROUP BY k % $n"
    )

  private def measure(session: SparkSession, name: String, hinted: Seq[String], rounds: Int): Seq[Result] = {
    val plain = hinted.map(_.replace(Hint, ""))
    val measured = Turns.rounds(rounds, warmUp = rounds / 4)(
      Seq(
        "off" -> (() => plain.map(time(session, _, enabled = false)).sum),
        "plain" -> (() => plain.map(time(session, _, enabled = true)).sum),
        "hinted" -> (() => hinted.map(time(session, _, enabled = true)).sum)
      )
    )
    Seq(
      Result(name, "milliseconds without hints", Turns.median(measured.map(_("plain"))), 1),
      Turns.ratio(name, "hinted", measured.map(round => round("hinted") / round("plain"))),
      Turns.ratio(name, "on without hints", measured.map(round => round("plain") / round("off")))
    )
  }

  /** Milliseconds of analysis and optimization. */
  private def time(session: SparkSession, query: String, enabled: Boolean): Double = {
    session.conf.set("spark.apportion.enabled", enabled.toString)
    session.withActive {
      val parsed = session.sessionState.sqlParser.parsePlan(query)
      Turns.millis(new QueryExecution(session, parsed).optimizedPlan)
    }
  }
}

package io.apportion.policies

import java.nio.file.Files

import org.apache.spark.apportion.{Result, Turns}
import org.apache.spark.sql.TpcTables
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession

/** Time of the rule that applies a policy file of 1,000 rules to the queries of TPC-DS and TPC-H. */
object PolicyBenchmark {
  private val Rules = 1000
  private val Rounds = 60

  /** 1,000 rules of a policy file, for each of the 125 queries of TPC-DS and TPC-H. */
  def run(): Seq[Result] = {
    val policies = Files.createTempFile("policies", ".yaml").toString
    Turns.inSession("local[2]", "spark.apportion.policies" -> policies)(measureAll)
  }

  private def measureAll(session: SparkSession): Seq[Result] = {
    TpcTables.createViews(session)
    val plans = TpcTables.queries.map { case (_, text) => session.sql(text).queryExecution.analyzed }
    val matching = s"  - {match: {user: '*'}, settings: {parallelism: 8}}"
    def rules(condition: Int => String) =
      (1 to Rules).map(n => s"  - {match: {${condition(n)}}, settings: {parallelism: 8}}")
    val kinds = Seq[(String, Int => String)](
      "tables by name" -> (n => s"table: store_sales_$n"),
      "users and applications" -> (n => s"user: user-$n, application: etl-$n"),
      "table patterns" -> (n => s"table: '*_sales_$n'"),
      "fingerprints" -> (n => f"fingerprint: '$n%032x'"),
      "SQL patterns" -> (n => s"sql: 'FROM store_sales.*-- job $n'"),
      "SQL patterns that begin with a group" -> (n => s"sql: '(FROM|JOIN) store_sales_$n'"),
      "all of these, 200 of each" -> (n =>
        Seq(
          s"table: store_sales_$n",
          s"user: user-$n",
          s"table: '*_sales_$n'",
          f"fingerprint: '$n%032x'",
          s"sql: 'FROM store_sales.*-- job $n'"
        )(n % 5)
      )
    )
    val none = kinds.flatMap { case (name, condition) => measure(session, plans, s"$name; no match", rules(condition)) }
    val last = kinds.last._2
    none ++ measure(session, plans, "all of these, and one that matches", rules(last) :+ matching) ++
      measure(session, plans, "only one rule, which matches", Seq(matching))
  }

  /** Mean over the queries of the median time per query, and the median time of the slowest query. */
  private def measure(
      session: SparkSession,
      plans: Seq[LogicalPlan],
      name: String,
      rules: Seq[String]
  ): Seq[Result] = {
    val file = Files.createTempFile("policies", ".yaml")
    Files.write(file, String.join("\n", ("rules:" +: rules): _*).getBytes)
    val watcher = PolicyWatcher.reopen(session.sparkContext, file.toString, PolicyTimes())
    assert(watcher.rules.exists(_.rules.size == rules.size))
    val rule = ApplyPolicies(session)
    val medians = session.withActive {
      plans.map(plan => Turns.median((1 to Rounds).map(_ => Turns.millis(rule(plan))).drop(Rounds / 3)))
    }
    Seq(
      Result(name, "milliseconds, mean", medians.sum / medians.size, 3),
      Result(name, "milliseconds, slowest", medians.max, 3)
    )
  }
}

package io.apportion.policies

import java.nio.file.Files

import io.apportion.ApportionExtension
import org.apache.spark.sql.{SparkSession, TpcTables}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** Time of the rule that applies a policy file of 1,000 rules to the queries of TPC-DS and TPC-H. */
object PolicyBenchmark {

  /**
   * @param meanMillis    mean over the queries of the median time per query
   * @param slowestMillis median time of the slowest query
   */
  final case class Result(name: String, meanMillis: Double, slowestMillis: Double)

  private val Rules = 1000
  private val Rounds = 60

  def run(): Seq[Result] = {
    val session = SparkSession
      .builder()
      .master("local[2]")
      .config("spark.apportion.policies", Files.createTempFile("policies", ".yaml").toString)
      .withExtensions(new ApportionExtension)
      .getOrCreate()
    try {
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
      val none = kinds.map { case (name, condition) => measure(session, plans, s"$name; no match", rules(condition)) }
      val last = kinds.last._2
      none :+ measure(session, plans, "all of these, and one that matches", rules(last) :+ matching) :+
        measure(session, plans, "only one rule, which matches", Seq(matching))
    } finally session.stop()
  }

  private def measure(
      session: SparkSession,
      plans: Seq[LogicalPlan],
      name: String,
      rules: Seq[String]
  ): Result = {
    val file = Files.createTempFile("policies", ".yaml")
    Files.write(file, String.join("\n", ("rules:" +: rules): _*).getBytes)
    val watcher = PolicyWatcher.reopen(session.sparkContext, file.toString, PolicyTimes())
    assert(watcher.rules.exists(_.rules.size == rules.size))
    val rule = ApplyPolicies(session)
    val medians = session.asInstanceOf[org.apache.spark.sql.classic.SparkSession].withActive {
      plans.map { plan =>
        val times = (1 to Rounds).map { _ =>
          val start = System.nanoTime()
          rule(plan)
          (System.nanoTime() - start) / 1e6
        }
        times.drop(Rounds / 3).sorted.apply(Rounds / 3)
      }
    }
    Result(name, medians.sum / medians.size, medians.max)
  }
}

package io.apportion.rules

import io.apportion.{ApportionExtension, SparkSuite}
import io.apportion.reads.{DecideShuffleReads, LocalReads}
import org.apache.spark.sql.SparkSessionExtensions

/** A rule that throws must not be noticed by the query. */
class GuardedSuite extends SparkSuite {
  override protected def rulesFail: Boolean = true

  override protected def extension: SparkSessionExtensions => Unit = extensions => {
    new ApportionExtension().apply(extensions)
    extensions.injectQueryStageOptimizerRule(
      DecideShuffleReads(_, Nil, decide = (_, _) => throw new IllegalStateException("on purpose"))
    )
    extensions.injectQueryStageOptimizerRule(
      DecideShuffleReads(_, Nil, decide = (_, _) => throw new NoSuchMethodError("another Spark"))
    )
  }

  test("a query returns its rows if a rule fails, and the other rules still decide") {
    val decisions = withSession("parallelism" -> "3") { session =>
      val query = session.sql("SELECT k, count(*) FROM numbers GROUP BY k")
      assert(query.count() == 1000)
      decisionsOf(session, query)
    }
    assert(decisions.map(_.tasks) == Seq(3))
  }

  test("the log names the setting that switches off a failed rule") {
    val lines = Logged.by("io.apportion.rules.Guarded") {
      Guarded.report(LocalReads(spark), Some(1000003), new IllegalStateException("on purpose"))
    }
    assert(lines.map(_.contains("SET spark.apportion.rules.disabled=LocalReads switches this rule off")) == Seq(true))
  }

  test("a failure is reported once per query and rule") {
    val rule = DecideShuffleReads(spark, Nil)
    assert(Guarded.report(rule, Some(1000001), new IllegalStateException("first")))
    assert(!Guarded.report(rule, Some(1000001), new IllegalStateException("again")))
    assert(Guarded.report(rule, Some(1000002), new IllegalStateException("another query")))
    assert(Guarded.report(LocalReads(spark), Some(1000001), new IllegalStateException("another rule")))
  }
}

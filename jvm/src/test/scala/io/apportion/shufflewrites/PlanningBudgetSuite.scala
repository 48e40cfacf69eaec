package io.apportion.shufflewrites

import java.util.concurrent.atomic.AtomicInteger

import io.apportion.{ApportionExtension, SparkSuite}
import io.apportion.groups.{Advisor, ExchangeGroup, GroupPolicy}
import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanHelper, ShuffleQueryStageExec}

/** Spark plans the rest of a query again whenever a stage has finished. What rules compute must not grow with that. */
class PlanningBudgetSuite extends SparkSuite with AdaptiveSparkPlanHelper {
  private val asked = new AtomicInteger

  private object Counting extends Advisor {
    override def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy = {
      asked.incrementAndGet()
      known
    }
  }

  override protected def extension: SparkSessionExtensions => Unit = { extensions =>
    ApportionExtension.registerSettings()
    extensions.injectQueryStagePrepRule(AdaptiveWrites(_, Seq(Counting)))
    extensions.injectColumnar(ReplaceExchange.columnarRule)
  }

  test("the policy of a shuffle is made when the query is planned and when its stage is created, not again between") {
    withSession() { session =>
      val nested =
        (1 to 6).foldLeft("numbers")((from, i) => s"(SELECT count(*) % 9 + id % $i AS id FROM $from GROUP BY id)")
      val query = session.sql(s"SELECT id FROM $nested")
      query.collect()
      val shuffles = collect(query.queryExecution.executedPlan) { case stage: ShuffleQueryStageExec => stage }.size
      assert(shuffles >= 5)
      assert(asked.get <= 2 * shuffles)
    }
  }
}

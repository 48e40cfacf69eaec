package io.apportion.shufflewrites

import io.apportion.groups.InputBytes
import io.apportion.history.LeafBytes
import io.apportion.rules.Guarded
import io.apportion.util.{BoundedMap, PerApplication}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.exchange.{AdaptiveExchangeExec, ShuffleSize}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{ColumnarRule, DataSourceScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/** Replaces an exchange that [[AdaptiveWrites]] has marked, when its stage is created. */
private[shufflewrites] final class ReplaceExchange(override protected val session: SparkSession)
    extends Guarded[SparkPlan] {
  override def publicName: String = "AdaptiveWrites"

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = plan match {
    case exchange: ShuffleExchangeExec =>
      exchange.getTagValue(AdaptiveWrites.Goal).fold(plan) { goal =>
        val earlier = ReplaceExchange.earlier.of(session.sparkContext)
        // The hash code is enough: with a wrong number, map tasks only start with other groups.
        val name = exchange.canonicalized.hashCode
        val adaptive = AdaptiveExchangeExec(
          exchange.outputPartitioning,
          exchange.child,
          exchange.shuffleOrigin,
          exchange.advisoryPartitionSize
        )(
          exchange,
          goal().copy(likely = earlier.get(name).getOrElse(likelySize(exchange.child))),
          earlier.put(name, _)
        )
        adaptive.copyTagsFrom(exchange)
        // It holds the plan of the query, which a cached table would keep.
        adaptive.unsetTagValue(AdaptiveWrites.Goal)
        adaptive
      }
    case other => other
  }

  /** A part of the bytes that finished shuffles and scans bring in. An aggregate may leave few of them. */
  private def likelySize(plan: SparkPlan): ShuffleSize =
    if (plan.exists(_.isInstanceOf[BaseAggregateExec])) ShuffleSize()
    else
      plan
        .collect {
          case stage: ShuffleQueryStageExec if stage.isMaterialized =>
            ShuffleSize(InputBytes.stored(stage) / 2, stage.getRuntimeStatistics.sizeInBytes.toLong / 2)
          case scan: DataSourceScanExec =>
            val read = LeafBytes.of(scan)
            // Rows take up more than twice as much as in a shuffle, and too few groups cost more than too many.
            ShuffleSize(read / 4, read)
        }
        .foldLeft(ShuffleSize())(_ + _)
}

private[apportion] object ReplaceExchange {

  /** The rule, which Spark runs when it creates the stage of an exchange (SPARK-32332). */
  def columnarRule(session: SparkSession): ColumnarRule = new ColumnarRule {
    override val postColumnarTransitions: Rule[SparkPlan] = new ReplaceExchange(session)
  }

  private val MaxKnown = 1000

  /** Sizes of the shuffles that an application has written, by their canonical plans. */
  private val earlier = new PerApplication(_ => new BoundedMap[Int, ShuffleSize](MaxKnown))
}

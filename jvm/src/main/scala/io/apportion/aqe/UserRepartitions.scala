package io.apportion.aqe

import io.apportion.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.physical.ClusteredDistribution
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AQEUtils
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_NUM, ShuffleExchangeExec}

/**
 * Remembers a `repartition(n, columns)` at the top of a query before Spark places exchanges: Spark drops it where the plan below
 * is partitioned that way into n parts already, and then that plan has to keep its n.
 */
case class UserRepartitions(session: SparkSession) extends Guarded[SparkPlan] {

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    AQEUtils.getRequiredDistribution(plan) match {
      case Some(required: ClusteredDistribution) =>
        for {
          n <- required.requiredNumPartitions
          repartition <- UserRepartitions.in(plan).headOption
        } repartition.child.setTagValue(UserRepartitions.Asked, n)
      case _ =>
    }
    plan
  }
}

object UserRepartitions {
  private val Asked = TreeNodeTag[Int]("apportion.userRepartition")

  private def in(plan: SparkPlan): Seq[ShuffleExchangeExec] = plan.collect {
    case exchange: ShuffleExchangeExec if exchange.shuffleOrigin == REPARTITION_BY_NUM => exchange
  }

  /** Forgets those that Spark did not drop: their exchange says it all. */
  def forgetKept(plan: SparkPlan): Unit = in(plan).foreach(_.child.unsetTagValue(Asked))

  /** Why what is below this node keeps its number of partitions, if the query asks for that by a dropped repartition. */
  def pinned(node: SparkPlan): Option[String] =
    node.getTagValue(Asked).map(n => s"the query asks for its $n partitions by repartition")
}

package io.apportion.groups

import io.apportion.rules.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, HashPartitioning}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AQEUtils
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_COL, REPARTITION_BY_NUM, ShuffleExchangeExec}

/**
 * Remembers the repartitions of a query before Spark places exchanges. `EnsureRequirements` drops a repartition if the plan below it is
 * partitioned that way already, into as many partitions. Then that plan has to keep its number: else a later plan has one exchange
 * more, and AQE rejects it as more expensive (`AdaptiveSparkPlanExec`), and so all later ones.
 */
case class UserRepartitions(session: SparkSession) extends Guarded[SparkPlan] {
  import UserRepartitions._

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    val asked = AQEUtils.getRequiredDistribution(plan) match {
      case Some(required: ClusteredDistribution) => required.requiredNumPartitions
      case _                                     => None
    }
    in(plan).foreach { repartition =>
      if (asked.isDefined && repartition.shuffleOrigin == REPARTITION_BY_NUM)
        repartition.child.setTagValue(Asked, asked.get)
      else repartition.child.setTagValue(Matched, ())
    }
    plan
  }

  override protected def applyObserved(plan: SparkPlan): SparkPlan = applyGuarded(plan)
}

object UserRepartitions {
  private val Asked = TreeNodeTag[Int]("apportion.userRepartition")
  private val Matched = TreeNodeTag[Unit]("apportion.matchedRepartition")

  private def in(plan: SparkPlan): Seq[ShuffleExchangeExec] = plan.collect {
    case exchange: ShuffleExchangeExec
        if exchange.shuffleOrigin == REPARTITION_BY_NUM || exchange.shuffleOrigin == REPARTITION_BY_COL &&
          exchange.outputPartitioning.isInstanceOf[HashPartitioning] =>
      exchange
  }

  /** Forgets those that Spark did not drop: their exchange says it all. */
  def forgetKept(plan: SparkPlan): Unit = in(plan).foreach { repartition =>
    repartition.child.unsetTagValue(Asked)
    repartition.child.unsetTagValue(Matched)
  }

  /** Why what is below this node keeps its partitions, if the query asks for their number by a dropped repartition. */
  def pinned(node: SparkPlan): Option[String] =
    node.getTagValue(Asked).map(n => s"the query asks for its $n partitions by repartition")

  /** Why what is below this node keeps Spark's number of partitions, if Spark dropped a repartition of the query for it. */
  def keepsCount(node: SparkPlan): Option[String] =
    node.getTagValue(Matched).map(_ => "a repartition of the query matches it, and would be planned again")
}

package io.apportion.groups

import io.apportion.decision.Sentence
import io.apportion.rules.Guarded
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, HashPartitioning}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.AQEUtils
import org.apache.spark.sql.execution.exchange.{REPARTITION_BY_COL, REPARTITION_BY_NUM, ShuffleExchangeExec}

/**
 * Records the repartitions of a query before Spark places exchanges. `EnsureRequirements` drops a repartition if the
 * plan below it already has the same partitioning and number of partitions. That plan must then keep its number. With
 * another number, a later plan has one more exchange, and AQE rejects it and all following plans as more expensive
 * (`AdaptiveSparkPlanExec`).
 */
case class UserRepartitions(session: SparkSession) extends Guarded[SparkPlan] {
  import UserRepartitions._

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    val requiredNumber = AQEUtils.getRequiredDistribution(plan) match {
      case Some(required: ClusteredDistribution) => required.requiredNumPartitions
      case _                                     => None
    }
    repartitionsIn(plan).foreach { repartition =>
      if (requiredNumber.isDefined && repartition.shuffleOrigin == REPARTITION_BY_NUM)
        repartition.child.setTagValue(RequiredNumber, requiredNumber.get)
      else repartition.child.setTagValue(Matched, ())
    }
    plan
  }

  override protected def applyObserved(plan: SparkPlan): SparkPlan = applyGuarded(plan)
}

object UserRepartitions {
  private val RequiredNumber = TreeNodeTag[Int]("apportion.userRepartition")
  private val Matched = TreeNodeTag[Unit]("apportion.matchedRepartition")

  private def repartitionsIn(plan: SparkPlan): Seq[ShuffleExchangeExec] = plan.collect {
    case exchange: ShuffleExchangeExec
        if exchange.shuffleOrigin == REPARTITION_BY_NUM || exchange.shuffleOrigin == REPARTITION_BY_COL &&
          exchange.outputPartitioning.isInstanceOf[HashPartitioning] =>
      exchange
  }

  /** Clears the records of repartitions that Spark kept. Their exchanges are still in the plan and show the number. */
  def clearKeptRepartitions(plan: SparkPlan): Unit = repartitionsIn(plan).foreach { repartition =>
    repartition.child.unsetTagValue(RequiredNumber)
    repartition.child.unsetTagValue(Matched)
  }

  /** Reason why the plan below this node keeps its partitions: the query sets their number by a dropped repartition. */
  def pinned(node: SparkPlan): Option[String] =
    node.getTagValue(RequiredNumber).map(n => s"the query sets its ${Sentence.count(n, "partition")} by repartition")

  /**
   * Whether Spark dropped a repartition that matches the partitions of this node. With another number of partitions, it
   * would plan the repartition again.
   */
  def matches(node: SparkPlan): Boolean = node.getTagValue(Matched).isDefined
}

package io.apportion.hints

import scala.annotation.tailrec

import io.apportion.rules.{Guarded, PrivateCopy}
import io.apportion.util.AnyVersion
import org.apache.spark.sql.apportion.{CachedPlans, QueryValues}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.optimizer.InlineCTE
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, SubqueryAlias, UnaryNode, View, WithCTE}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.catalyst.trees.TreePattern.CTE
import org.apache.spark.sql.internal.SQLConf

/**
 * Records the query block of each operator and column of a query with hints, in its text or in the policy file. It
 * runs after analysis and before optimization. Other queries are not changed.
 */
case class AssignBlocks(session: SparkSession) extends Guarded[LogicalPlan] {
  import AssignBlocks._

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan =
    PolicyHints.of(plan) match {
      case None if !HintMark.isIn(plan) => plan
      case policy                       =>
        val privateCopy = PrivateCopy.of(inlineCtes(plan))
        val deadline = deadlineOf(privateCopy, policy.getOrElse(PolicyHints.none))
        QueryBlockFinder.assign(privateCopy, policy.getOrElse(PolicyHints.none))
        deadline.foreach(hint => privateCopy.setTagValue(Deadline, hint.value))
        privateCopy
    }

  /** The hint FINISH_WITHIN of the outermost block. Inner blocks are warned about, because it would not count there. */
  private def deadlineOf(plan: LogicalPlan, policy: PolicyHints): Option[Hinted[Long]] = {
    val outermost = outermostMark(plan).map(_.hints)
    plan.foreach { node =>
      for (
        mark <- HintMark.of(node) if mark.isTop && !outermost.exists(_ eq mark.hints); hint <- mark.hints.finishWithin
      )
        logWarning(
          s"FINISH_WITHIN${hint.line.fold("")(line => s" in line $line")} is ignored, because its block is inside of " +
            "another one or of a set operation. Write it in the outermost SELECT, as it applies to the whole query."
        )
    }
    outermost.getOrElse(BlockHints.none).without(policy.forcedSettings).merged(policy.ofQuery).finishWithin
  }

  /** The mark of the outermost block. Writes, and operators that a DataFrame adds to a query, are above it. */
  @tailrec private def outermostMark(plan: LogicalPlan): Option[HintMark] = plan match {
    case marked if HintMark.of(marked).isDefined    => HintMark.of(marked)
    case _: SubqueryAlias | _: View                 => None
    case WithCTE(query, _)                          => outermostMark(query)
    case unary: UnaryNode                           => outermostMark(unary.child)
    case write: Command if write.children.size == 1 => outermostMark(write.children.head)
    case _                                          => None
  }

  /** The plan is at the beginning: it shows whether its query has settings of its own. */
  override protected def queryConf(plan: LogicalPlan): Option[SQLConf] = QueryValues.confAtRoot(plan)

  /** Observed decisions depend on the blocks of hints. */
  override protected def applyObserved(plan: LogicalPlan): LogicalPlan = applyGuarded(plan)

  /**
   * Puts each use of a common table expression into the block that uses it, as Spark's optimizer does later. Spark
   * looks up cached plans between these two points, so plans that it would find in the cache must not change.
   */
  private def inlineCtes(plan: LogicalPlan): LogicalPlan =
    if (plan.containsPattern(CTE) && !CachedPlans.exists(session, plan)(_.containsPattern(CTE)))
      AnyVersion.allFalse(classOf[InlineCTE])(plan)
    else plan
}

object AssignBlocks {
  private val Deadline = TreeNodeTag[Long]("apportion.finishWithin")

  /** Milliseconds of the hint FINISH_WITHIN of a query, from its plan before optimization. */
  def finishWithin(plan: LogicalPlan): Option[Long] = plan.getTagValue(Deadline)
}

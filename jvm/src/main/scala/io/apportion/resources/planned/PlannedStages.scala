package io.apportion.resources.planned

import scala.collection.mutable

import io.apportion.decision.{Decider, Policy, ResourceRequirement}
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{ExchangeGroup, GroupRead}
import io.apportion.resources.SlotCoordinator
import io.apportion.scans.ScanTasks
import io.apportion.settings.SessionPolicy
import io.apportion.sizing.OutputEstimate
import org.apache.spark.apportion.Cluster
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.QueryConf
import org.apache.spark.sql.execution.{CommandExecutionMode, SparkPlan, SubqueryExec}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange, ReusedExchangeExec}
import org.apache.spark.sql.internal.SQLConf

/**
 * A planned stage of a query.
 *
 * @param kind  use of the stage's output: shuffle, broadcast, subquery or result
 * @param reads numbers of the stages that it reads
 * @param bytes estimated bytes that it reads, if they can be estimated
 * @param tasks estimated number of tasks
 * @param why   reason for the number of tasks and the requirement
 */
private[apportion] final case class PlannedStage(
    number: Int,
    kind: String,
    operator: String,
    reads: Seq[Int],
    bytes: Option[Long],
    tasks: Int,
    need: StageNeed,
    why: String
)

/** Plans a query without running it, and estimates the task slots that its stages need. */
private[apportion] object PlannedStages {

  def of(session: SparkSession, sql: String): Seq[PlannedStage] = {
    val parsed = session.sessionState.sqlParser.parsePlan(sql)
    val planned = session.sessionState.executePlan(parsed, CommandExecutionMode.SKIP)
    val conf = QueryConf.atRoot(planned.normalized).getOrElse(session.sessionState.conf)
    SQLConf.withExistingConf(conf)(new Planner(session, conf).stagesOf(planned.executedPlan))
  }

  /** An exchange group or a scan of a stage: its tasks and the reason for their number. */
  private final case class Part(
      operator: String,
      bytes: Option[Long],
      tasks: Int,
      need: ResourceRequirement,
      why: String
  )

  private final class Planner(session: SparkSession, conf: SQLConf) {
    private val settings = new SessionPolicy(conf, session.sparkContext)
    private val scans = ScanTasks(session, SlotCoordinator)
    private val stages = mutable.ArrayBuffer.empty[PlannedStage]
    private val numbers = mutable.Map.empty[SparkPlan, Int]
    private val profile = Cluster.profileId(session.sparkContext)

    def stagesOf(plan: SparkPlan): Seq[PlannedStage] = {
      stage(plan, "result")
      stages.toSeq
    }

    /** Adds the stages that a stage reads and then the stage itself. Returns its number. */
    private def stage(root: SparkPlan, kind: String): Int = {
      val plan = unwrapped(root)
      val subqueries =
        nodesOf(plan).flatMap(_.subqueries).collect { case subquery: SubqueryExec => stage(subquery.child, "subquery") }
      val reads = (subqueries ++ boundaries(plan).map(ofExchange)).distinct
      val parts = partsOf(plan)
      val number = stages.size
      val depth = reads.map(stages(_).need.depth + 1).maxOption.getOrElse(0)
      stages += PlannedStage(
        number,
        kind,
        parts.head.operator,
        reads,
        parts.map(_.bytes).reduce((one, other) => for (a <- one; b <- other) yield Bytes.add(a, b)),
        parts.map(_.tasks).sum,
        StageNeed(profile, depth, together(parts.map(_.need))),
        parts.map(_.why).distinct.mkString("; ")
      )
      number
    }

    private def ofExchange(exchange: SparkPlan): Int = exchange match {
      case reused: ReusedExchangeExec       => ofExchange(reused.child)
      case broadcast: BroadcastExchangeLike => numbered(broadcast, "broadcast")
      case other                            => numbered(other, "shuffle")
    }

    private def numbered(exchange: SparkPlan, kind: String): Int =
      numbers.getOrElse(
        exchange.canonicalized, {
          val number = stage(exchange.children.head, kind)
          numbers.update(exchange.canonicalized, number)
          number
        }
      )

    /** The exchange groups and scans of a stage. The stage runs the tasks of all of them. */
    private def partsOf(plan: SparkPlan): Seq[Part] = {
      val groups = ExchangeGroup.collect(plan).map(ofGroup)
      val parts = groups ++ nodesOf(plan).filter(_.children.isEmpty).filterNot(isBoundary).map(ofLeaf)
      if (parts.isEmpty)
        Seq(Part(plan.nodeName, None, 1, ResourceRequirement(1, 1, 1, settings.spec), "reads only broadcasts"))
      else parts
    }

    private def ofGroup(group: ExchangeGroup): Part = {
      val policy = GroupRead.policy(group, settings, None)
      val subpartitions = group.leaves.map(_.subpartitions).max
      val output = OutputEstimate.sum(group.leaves.map(_.node))
      val bytes = (if (policy.rowBytes) output.expanded else output.stored).typical
      group.forbidden match {
        case Some(why) => Part(group.operator, bytes, subpartitions, upTo(subpartitions), s"unchanged: $why")
        case None      => decided(group.operator, bytes, subpartitions, policy)
      }
    }

    private def decided(operator: String, bytes: Option[Long], subpartitions: Int, policy: Policy): Part = {
      val most = policy.upperBound.min(subpartitions)
      val likely = bytes.map(Decider.parallelism(_, policy).min(most))
      policy.parallelism match {
        case Some(set) =>
          val who = policy.setBy.get("parallelism").fold("setting")(_.text)
          Part(
            operator,
            bytes,
            set.min(subpartitions),
            ResourceRequirement.explicitly(set, settings.spec),
            s"parallelism, $who"
          )
        case None =>
          val tasks = likely.getOrElse(most)
          val why = bytes.fold("unknown size")(b => s"estimate of ${Bytes.text(b)}")
          val byBytes = bytes.map(Decider.parallelism(_, policy.copy(slots = None)).min(most))
          val need =
            if (settings.reactive) ResourceRequirement.reactive(most, settings.spec)
            else
              ResourceRequirement.active(
                byBytes.getOrElse(session.sparkContext.defaultParallelism),
                most,
                settings.spec
              )
          Part(operator, bytes, tasks, need, why)
      }
    }

    private def ofLeaf(leaf: SparkPlan): Part = scans.decide(leaf) match {
      case Some((decision, policy)) =>
        val tasks = decision.parallelism
        val need = policy.parallelism.fold(upTo(tasks))(ResourceRequirement.explicitly(_, settings.spec))
        Part(leaf.nodeName.trim, Some(decision.inputBytes), tasks, need, decision.reason)
      case None =>
        val known = leaf.outputPartitioning.numPartitions
        val tasks = if (known > 0) known else session.sparkContext.defaultParallelism
        Part(leaf.nodeName.trim, None, tasks, upTo(tasks), "number of partitions of the source")
    }

    private def upTo(tasks: Int): ResourceRequirement = {
      val n = tasks.max(1)
      ResourceRequirement(1, n, n, settings.spec)
    }

    /** The requirement of a stage with several parts, which run at the same time. */
    private def together(parts: Seq[ResourceRequirement]): ResourceRequirement =
      parts.reduce((one, other) =>
        ResourceRequirement(one.min.max(other.min), one.target + other.target, one.max + other.max, settings.spec)
      )

    private def unwrapped(plan: SparkPlan): SparkPlan = plan match {
      case adaptive: AdaptiveSparkPlanExec => unwrapped(adaptive.initialPlan)
      case other                           => other
    }

    /** The operators of a stage, down to the exchanges that it reads. */
    private def nodesOf(node: SparkPlan): Seq[SparkPlan] = unwrapped(node) match {
      case boundary if isBoundary(boundary) => Seq(boundary)
      case other                            => other +: other.children.flatMap(nodesOf)
    }

    private def boundaries(plan: SparkPlan): Seq[SparkPlan] = nodesOf(plan).filter(isBoundary)

    private def isBoundary(node: SparkPlan): Boolean = node match {
      case _: Exchange | _: ReusedExchangeExec => true
      case _                                   => false
    }
  }
}

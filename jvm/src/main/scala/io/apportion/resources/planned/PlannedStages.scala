package io.apportion.resources.planned

import scala.collection.mutable

import io.apportion.decision.{Decider, Policy, ResourceRequirement}
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{Advisor, ExchangeGroup, GroupRead}
import io.apportion.history.LeafBytes
import io.apportion.hints.{BlockHints, GroupHints, OperatorBlock}
import io.apportion.scans.ScanTasks
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.ExecutorResources
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.QueryConf
import org.apache.spark.sql.execution.{CommandExecutionMode, QueryExecution, SparkPlan, SubqueryExec}
import org.apache.spark.sql.execution.adaptive.{
  AdaptiveSparkPlanExec,
  BroadcastQueryStageExec,
  QueryStageExec,
  ShuffleQueryStageExec
}
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

  def of(session: SparkSession, sql: String, advisors: Seq[Advisor]): Seq[PlannedStage] = {
    val planned = plan(session, sql)
    val conf = QueryConf.atRoot(planned.normalized).getOrElse(session.sessionState.conf)
    SQLConf.withExistingConf(conf)(new Planner(session, conf, advisors).stagesOf(planned.executedPlan))
  }

  /** Plans a query without running it. */
  def plan(session: SparkSession, sql: String): QueryExecution =
    session.sessionState.executePlan(session.sessionState.sqlParser.parsePlan(sql), CommandExecutionMode.SKIP)

  /**
   * The stages of a running query that have not finished. Stages of depth 0 run, or can start. The bytes of finished
   * stages are known.
   */
  def ahead(session: SparkSession, running: SparkPlan, conf: SQLConf, advisors: Seq[Advisor]): Seq[PlannedStage] =
    new Planner(session, conf, advisors).stagesOf(currentPlan(running))

  /** The current plan of a query. A command can have it below the root. */
  private def currentPlan(plan: SparkPlan): SparkPlan = plan match {
    case adaptive: AdaptiveSparkPlanExec => adaptive.executedPlan
    case other                           => other
  }

  /** An exchange group or a scan of a stage: its tasks and the reason for their number. */
  private final case class Part(
      operator: String,
      bytes: Option[Long],
      tasks: Int,
      need: ResourceRequirement,
      why: String
  )

  private final class Planner(session: SparkSession, conf: SQLConf, advisors: Seq[Advisor]) {
    private val settings = new SessionPolicy(conf, session.sparkContext)
    private val scans = ScanTasks(session, Nil)
    private val stages = mutable.ArrayBuffer.empty[PlannedStage]
    private val numbers = mutable.Map.empty[SparkPlan, Int]

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
      val profile = ExecutorResources.profileOf(session.sparkContext, nodesOf(plan))
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
        StageNeed(
          profile.id,
          depth,
          together(parts.map(_.need)),
          ExecutorResources.spec(session.sparkContext, profile)
        ),
        parts.map(_.why).distinct.mkString("; ")
      )
      number
    }

    private def ofExchange(exchange: SparkPlan): Int = exchange match {
      case stage: QueryStageExec            => ofExchange(stage.plan)
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
      if (parts.isEmpty) Seq(Part(plan.nodeName, None, 1, ResourceRequirement(1, 1, 1), "reads only broadcasts"))
      else parts
    }

    private def ofGroup(group: ExchangeGroup): Part = {
      val policy = GroupRead.policy(group, settings, advisors, session).policy
      val subpartitions = group.leaves.map(_.subpartitions).max
      val bytes = Some(group.leaves.map(leaf => LeafBytes.of(leaf.shuffle)).foldLeft(0L)(Bytes.add)).filter(_ > 0)
      val part = group.forbidden match {
        case Some(why) => Part(group.operator, bytes, subpartitions, upTo(subpartitions), s"unchanged: $why")
        case None      => decided(group.operator, bytes, subpartitions, policy)
      }
      hinted(part, GroupHints.of(group))
    }

    /** A part with the requirement of its block's hint, if there is one. */
    private def hinted(part: Part, hints: BlockHints): Part = hints.slots.fold(part) { slots =>
      part.copy(need = slots.value, why = s"${part.why}; slots, ${slots.setBy.text}")
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
            ResourceRequirement.explicitly(set),
            s"parallelism, $who"
          )
        case None =>
          val tasks = likely.getOrElse(most)
          val why = bytes.fold("unknown size")(b => s"the inputs have ${Bytes.text(b)}")
          val byBytes = bytes.map(Decider.parallelism(_, policy.copy(slots = None)).min(most))
          val need =
            if (settings.reactive) ResourceRequirement.reactive(most)
            else
              ResourceRequirement.active(byBytes.getOrElse(session.sparkContext.defaultParallelism), most)
          Part(operator, bytes, tasks, need, why)
      }
    }

    private def ofLeaf(leaf: SparkPlan): Part = scans.decide(leaf) match {
      case Some((decision, policy)) =>
        val tasks = decision.parallelism
        val need = policy.parallelism.fold(upTo(tasks))(ResourceRequirement.explicitly(_))
        val part = Part(leaf.nodeName.trim, Some(decision.inputBytes), tasks, need, decision.sentence.text)
        hinted(part, OperatorBlock.ofScan(leaf).fold(BlockHints.none)(_.hints))
      case None =>
        val known = leaf.outputPartitioning.numPartitions
        val tasks = if (known > 0) known else session.sparkContext.defaultParallelism
        Part(leaf.nodeName.trim, None, tasks, upTo(tasks), "number of partitions of the source")
    }

    private def upTo(tasks: Int): ResourceRequirement = {
      val n = tasks.max(1)
      ResourceRequirement(1, n, n)
    }

    /** The requirement of a stage with several parts, which run at the same time. */
    private def together(parts: Seq[ResourceRequirement]): ResourceRequirement =
      parts.reduce((one, other) =>
        ResourceRequirement(
          one.min.max(other.min),
          SlotSharing.sum(one.target, other.target),
          SlotSharing.sum(one.max, other.max)
        )
      )

    private def unwrapped(plan: SparkPlan): SparkPlan = plan match {
      case adaptive: AdaptiveSparkPlanExec => unwrapped(adaptive.executedPlan)
      case other                           => other
    }

    /** The operators of a stage, down to the exchanges that it reads. */
    private def nodesOf(node: SparkPlan): Seq[SparkPlan] = unwrapped(node) match {
      case boundary if isBoundary(boundary) => Seq(boundary)
      case other                            => other +: other.children.flatMap(nodesOf)
    }

    /** The exchanges below a stage, without those that have finished. */
    private def boundaries(plan: SparkPlan): Seq[SparkPlan] = nodesOf(plan).filter(isBoundary).filter {
      case stage: QueryStageExec => !stage.isMaterialized
      case _                     => true
    }

    private def isBoundary(node: SparkPlan): Boolean = node match {
      case _: Exchange | _: ReusedExchangeExec | _: ShuffleQueryStageExec | _: BroadcastQueryStageExec => true
      case _                                                                                           => false
    }
  }
}

package io.apportion.resources.planned

import scala.collection.mutable

import io.apportion.decision.{Decider, Policy, ResourceRequirement}
import io.apportion.decision.ranges.Bytes
import io.apportion.groups.{Advisor, ExchangeGroup, GroupRead}
import io.apportion.history.{LeafBytes, StageCost}
import io.apportion.hints.{BlockHints, GroupHints, OperatorBlock}
import io.apportion.scans.ScanTasks
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.{ExecutorResources, ResourceSpec}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.QueryValues
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan, SubqueryExec}
import org.apache.spark.sql.execution.adaptive.{
  AdaptiveSparkPlanExec,
  BroadcastQueryStageExec,
  QueryStageExec,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange, ReusedExchangeExec}
import org.apache.spark.sql.internal.SQLConf

/**
 * A planned stage of a query. Its number is its place in the list of stages, in which it follows the stages that it reads.
 *
 * @param kind        use of the stage's output: shuffle, broadcast, subquery or result
 * @param reads       numbers of the stages that it reads
 * @param depth       number of stages that must run before it, one after the other; stages of equal depth can run at
 *                    the same time
 * @param bytes       estimated bytes that it reads, if they can be estimated
 * @param tasks       estimated number of tasks
 * @param requirement task slots that it needs
 * @param profile     id of the resource profile; stages with the same profile share slots
 * @param spec        resources of one slot
 * @param why         reason for the number of tasks and the requirement
 */
private[apportion] final case class PlannedStage(
    kind: String,
    operator: String,
    reads: Seq[Int],
    depth: Int,
    bytes: Option[Long],
    tasks: Int,
    requirement: ResourceRequirement,
    profile: Int,
    spec: ResourceSpec,
    why: String
)

/** The stages of a query that has not ended, and estimates of the task slots that they need. */
private[apportion] object PlannedStages {

  /** The stages of a query that does not run. */
  def of(session: SparkSession, query: QueryExecution, advisors: Seq[Advisor]): Seq[PlannedStage] = {
    val conf = QueryValues.confAtRoot(query.normalized).getOrElse(session.sessionState.conf)
    SQLConf.withExistingConf(conf)(ahead(session, query.executedPlan, conf, advisors))
  }

  /**
   * The stages of a running query that have not finished. Stages of depth 0 run, or can start. The bytes of finished
   * stages are known.
   */
  def ahead(session: SparkSession, running: SparkPlan, conf: SQLConf, advisors: Seq[Advisor]): Seq[PlannedStage] =
    new Planner(session, conf, advisors).stagesOf(running)

  /** The largest number of slots that stages can fill at the same time. */
  def atOnce(stages: Seq[PlannedStage]): Long =
    stages.groupMap(_.depth)(_.requirement.target.toLong).values.map(_.sum).maxOption.getOrElse(0L)

  /** Costs of the stages: their bytes at this speed of a slot. `None` if a size or the speed is unknown. */
  def costs(stages: Seq[PlannedStage], bytesPerSlotSecond: Double): Option[Seq[StageCost]] =
    Option.when(stages.nonEmpty && bytesPerSlotSecond > 0 && stages.forall(_.bytes.isDefined))(
      stages.map { stage =>
        val millis = (stage.bytes.getOrElse(0L) * 1000 / bytesPerSlotSecond).toLong
        val tasks = stage.tasks.max(1)
        StageCost(tasks, millis, (millis * LongestToMean / tasks).min(millis), after = stage.reads)
      }
    )

  /** Assumed time of the longest task, as a multiple of the mean. */
  private val LongestToMean = 2

  /** An exchange group or a scan of a stage: its tasks and the reason for their number. */
  private final case class Part(
      operator: String,
      bytes: Option[Long],
      tasks: Int,
      need: ResourceRequirement,
      why: String
  ) {

    /** The part with the requirement of its block's hint, if there is one. */
    def hinted(hints: BlockHints): Part =
      hints.slots.fold(this)(slots => copy(need = slots.value, why = s"$why; slots, ${slots.setBy.text}"))
  }

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
      val nodes = nodesOf(plan)
      val subqueries =
        nodes.flatMap(_.subqueries).collect { case subquery: SubqueryExec => stage(subquery.child, "subquery") }
      val reads = (subqueries ++ nodes.filter(isBoundary).filterNot(hasFinished).map(ofExchange)).distinct
      val parts = partsOf(plan, nodes)
      val profile = ExecutorResources.profileOf(session.sparkContext, nodes)
      stages += PlannedStage(
        kind,
        parts.head.operator,
        reads,
        depth = reads.map(stages(_).depth + 1).maxOption.getOrElse(0),
        bytes = parts.map(_.bytes).reduce((one, other) => for (a <- one; b <- other) yield Bytes.add(a, b)),
        tasks = parts.map(_.tasks).sum,
        SlotSharing.ofParts(parts.map(_.need)),
        profile.id,
        ExecutorResources.spec(session.sparkContext, profile),
        why = parts.map(_.why).distinct.mkString("; ")
      )
      stages.size - 1
    }

    private def ofExchange(exchange: SparkPlan): Int = exchange match {
      case stage: QueryStageExec      => ofExchange(stage.plan)
      case reused: ReusedExchangeExec => ofExchange(reused.child)
      case _                          =>
        val kind = if (exchange.isInstanceOf[BroadcastExchangeLike]) "broadcast" else "shuffle"
        numbers.getOrElseUpdate(exchange.canonicalized, stage(exchange.children.head, kind))
    }

    /** The exchange groups and scans of a stage. The stage runs the tasks of all of them. */
    private def partsOf(plan: SparkPlan, nodes: Seq[SparkPlan]): Seq[Part] = {
      val leaves = nodes.filter(_.children.isEmpty).filterNot(isBoundary)
      val parts = ExchangeGroup.collect(plan).map(ofGroup) ++ leaves.map(ofLeaf)
      if (parts.isEmpty) Seq(Part(plan.nodeName, None, 1, upTo(1), "reads only broadcasts")) else parts
    }

    private def ofGroup(group: ExchangeGroup): Part = {
      val policy = GroupRead.policy(group, settings, advisors, session).policy
      val subpartitions = group.leaves.map(_.subpartitions).max
      val most = policy.upperBound.min(subpartitions)
      val bytes = Some(group.leaves.map(leaf => LeafBytes.of(leaf.shuffle)).foldLeft(0L)(Bytes.add)).filter(_ > 0)
      def likely(policy: Policy): Option[Int] = bytes.map(Decider.parallelism(_, policy).min(most))
      val (tasks, need, why) = (group.forbidden, policy.parallelism) match {
        case (Some(forbidden), _) => (subpartitions, upTo(subpartitions), s"unchanged: $forbidden")
        case (None, Some(set))    =>
          val setBy = policy.setBy.get("parallelism").fold("setting")(_.text)
          (set.min(subpartitions), ResourceRequirement.explicitly(set), s"parallelism, $setBy")
        case (None, None) =>
          def target = likely(policy.copy(slots = None)).getOrElse(session.sparkContext.defaultParallelism)
          val need =
            if (settings.reactive) ResourceRequirement.reactive(most) else ResourceRequirement.active(target, most)
          val why = bytes.fold("unknown size")(b => s"the inputs have ${Bytes.text(b)}")
          (likely(policy).getOrElse(most), need, why)
      }
      Part(group.operator, bytes, tasks, need, why).hinted(GroupHints.of(group))
    }

    private def ofLeaf(leaf: SparkPlan): Part = scans.decide(leaf) match {
      case Some((decision, policy)) =>
        val tasks = decision.parallelism
        val need = policy.parallelism.fold(upTo(tasks))(ResourceRequirement.explicitly(_))
        Part(leaf.nodeName.trim, Some(decision.inputBytes), tasks, need, decision.sentence.text)
          .hinted(OperatorBlock.ofScan(leaf).fold(BlockHints.none)(_.hints))
      case None =>
        val known = leaf.outputPartitioning.numPartitions
        val tasks = if (known > 0) known else session.sparkContext.defaultParallelism
        Part(leaf.nodeName.trim, None, tasks, upTo(tasks), "number of partitions of the source")
    }

    private def upTo(tasks: Int): ResourceRequirement = ResourceRequirement.active(tasks, tasks.max(1))

    private def unwrapped(plan: SparkPlan): SparkPlan = plan match {
      case adaptive: AdaptiveSparkPlanExec => unwrapped(adaptive.executedPlan)
      case other                           => other
    }

    /** The operators of a stage, down to the exchanges that it reads. */
    private def nodesOf(node: SparkPlan): Seq[SparkPlan] = unwrapped(node) match {
      case boundary if isBoundary(boundary) => Seq(boundary)
      case other                            => other +: other.children.flatMap(nodesOf)
    }

    private def isBoundary(node: SparkPlan): Boolean = node match {
      case _: Exchange | _: ReusedExchangeExec | _: ShuffleQueryStageExec | _: BroadcastQueryStageExec => true
      case _                                                                                           => false
    }

    private def hasFinished(exchange: SparkPlan): Boolean = exchange match {
      case stage: QueryStageExec => stage.isMaterialized
      case _                     => false
    }
  }
}

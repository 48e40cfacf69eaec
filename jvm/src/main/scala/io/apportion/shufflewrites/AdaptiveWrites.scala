package io.apportion.shufflewrites

import io.apportion.decision.{Policy, SourceKind, ValueSource}
import io.apportion.decision.ranges.{Bytes, PowersOfTwo}
import io.apportion.groups.{Advisor, ExchangeGroup, GroupRead, UserRepartitions}
import io.apportion.rules.{CurrentQuery, Guarded, SharedPlans, ValidChanges}
import io.apportion.settings.SessionPolicy
import io.apportion.util.AnyVersion
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.exchange.WriteGoal
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning, RangePartitioning}
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{ShuffleQueryStageExec, TableCacheQueryStageExec}
import org.apache.spark.sql.execution.columnar.{InMemoryRelation, InMemoryTableScanExec}
import org.apache.spark.sql.execution.exchange._
import org.apache.spark.sql.internal.SQLConf

/**
 * Gives the shuffles of a query one large number of partitions, and marks those whose map tasks decide how finely they
 * write. A mark becomes an `AdaptiveExchangeExec` when the stage of the shuffle is created (`ReplaceExchange`). Until
 * then the plan has Spark's own exchanges, which Spark's rules and other libraries know.
 */
case class AdaptiveWrites(session: SparkSession, advisors: Seq[Advisor]) extends Guarded[SparkPlan] {
  import AdaptiveWrites._

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    UserRepartitions.clearKeptRepartitions(plan)
    lazy val settings = new SessionPolicy(conf, session.sparkContext)
    lazy val bytes = inputBytes(plan)
    val writes = for {
      fragment <- fragmentsOf(plan)
      fillsCache = readsCacheToFill(fragment)
      group <- ExchangeGroup.collect(fragment) if isAdaptive(group)
    } yield new Write(group, settings, bytes, fillsCache)
    PlainWrites.why(session, conf) match {
      case _ if writes.isEmpty => plan
      case Some(why)           =>
        val reason = ValueSource(SourceKind.Spark, s"written by Spark, as $why")
        writes.filterNot(_.keepsNumber).flatMap(_.exchanges).foreach(_.setTagValue(Why, reason))
        plan
      case None =>
        val (n, why) = partitions(plan, writes.filterNot(_.keepsNumber).map(_.policy), settings, bytes)
        ValidChanges.applyAll(plan, writes)(change(_, _, n, ValueSource(SourceKind.MapTasks, why)))
    }
  }

  override protected def applyWhenOff(plan: SparkPlan): SparkPlan = {
    UserRepartitions.clearKeptRepartitions(plan)
    plan
  }

  override protected def applyObserved(plan: SparkPlan): SparkPlan = applyWhenOff(plan)

  /**
   * All fragments of a plan. Spark runs no shuffle read rules on the last stage of a cached plan, so the shuffles that
   * this stage reads keep Spark's number.
   */
  private def fragmentsOf(plan: SparkPlan): Seq[SparkPlan] = {
    val decidesLast = conf.getConf(SQLConf.ADAPTIVE_EXECUTION_APPLY_FINAL_STAGE_SHUFFLE_OPTIMIZATIONS)
    (if (decidesLast) Seq(plan) else Nil) ++ plan.collect { case exchange: Exchange => exchange.child }
  }

  /**
   * Planned writes of the exchanges of a group. Spark plans the rest of a query again after each stage, but creates the
   * stage of an exchange once. So the goals are made then.
   */
  private final class Write(group: ExchangeGroup, settings: => SessionPolicy, bytes: => Long, fillsCache: Boolean) {
    val exchanges: Seq[ShuffleExchangeExec] = pending(group)

    /** Whether the shuffles keep their number of partitions, so that Spark can plan the query again. */
    lazy val keepsNumber: Boolean = group.keepsCount || fillsCache ||
      exchanges.exists(exchange => readsCacheToFill(exchange.child)) ||
      exchanges.size < group.leaves.size || SharedPlans
        .of(session)
        .exists(plans => exchanges.exists(isShared(_, plans)))
    private lazy val known = GroupRead.policy(group, settings, advisors, session, bytes = bytes)
    def policy: Policy = known.policy

    def goal(exchange: ShuffleExchangeExec): WriteGoal = {
      val byMemory = for (memory <- policy.taskMemory; ratio <- known.memoryPerByte) yield (memory / ratio).toLong
      // With volume.measure=estimated, the target size counts uncompressed bytes. A task reads its part of each shuffle.
      val target = ((byMemory.toSeq :+ policy.dataVolumePerTask).min / group.leaves.size).max(1)
      val inMemory = policy.taskMemory
        .flatMap(memory => advisors.flatMap(_.rowBytesIn(memory, group, exchange)).headOption)
        .getOrElse(Long.MaxValue)
      WriteGoal(
        taskBytes = target,
        slots = policy.slots.getOrElse(1),
        slotBytes = policy.minTaskVolume,
        rowBytes = if (policy.rowBytes) inMemory.min(target) else inMemory,
        minTasks = policy.parallelism.getOrElse(policy.lowerBound),
        maxFiles = WriteGoal.maxFiles(session.sparkContext)
      )
    }
  }

  /**
   * Number of partitions of all adaptive shuffles of the query, and its reason. It is one number, so that Spark can reuse
   * shuffles in subqueries, join any two of them, and plan the query again.
   */
  private def partitions(
      plan: SparkPlan,
      policies: => Seq[Policy],
      settings: SessionPolicy,
      bytes: => Long
  ): (Int, String) = {
    val running = plan.collect { case stage: ShuffleQueryStageExec =>
      AdaptiveWrites.why(stage.shuffle).map(stage.shuffle.outputPartitioning.numPartitions -> _.text)
    }
    running.flatten.headOption.getOrElse {
      val volume = settings.policy(bytes = bytes).dataVolumePerTask
      val choices = Seq(
        conf.numShufflePartitions.toLong -> s"spark.sql.shuffle.partitions, ${conf.numShufflePartitions}",
        (bytes / volume * Headroom).min(MaxByBytes) ->
          s"the query reads ${Bytes.text(bytes)} at ${Bytes.text(volume)} per task",
        policies.map(partitionsFor).foldLeft(0L)(_ max _) -> "the number of tasks"
      )
      val (n, why) = choices.maxBy(_._1)
      (PowersOfTwo.up(n.min(Max)).toInt, why)
    }
  }

  /** Bytes of the files and tables that the whole query reads, subqueries included. Unknown sizes do not count. */
  private def inputBytes(plan: SparkPlan): Long = {
    val running = CurrentQuery.of(session).flatMap(CurrentQuery.optimizedPlan)
    def ofPlan = plan.collectFirst { case node if node.logicalLink.isDefined => node.logicalLink.get }
    val leaves =
      running.orElse(ofPlan).fold(Seq.empty[LogicalPlan])(_.collectWithSubqueries { case leaf: LeafNode => leaf })
    leaves.map(_.stats.sizeInBytes).filter(_ < conf.defaultSizeInBytes).sum.min(Long.MaxValue).toLong
  }

  private def change(plan: SparkPlan, writes: Seq[Write], n: Int, why: ValueSource): SparkPlan = {
    val byExchange = writes.flatMap(write => write.exchanges.map(_.id -> write)).toMap
    plan.transformDown {
      case exchange: ShuffleExchangeExec if byExchange.contains(exchange.id) =>
        val write = byExchange(exchange.id)
        // transformDown keeps a node if the new one is equal, so the tags of an equal one would be lost.
        val changed = withNumber(exchange.outputPartitioning, n)
          .filter(_ => !write.keepsNumber && exchange.outputPartitioning.numPartitions != n)
          .fold(exchange)(AnyVersion.replace(exchange, exchange.outputPartitioning, _))
        changed.copyTagsFrom(exchange)
        changed.setTagValue(Goal, () => write.goal(exchange))
        if (!write.keepsNumber) changed.setTagValue(Why, why)
        changed
    }
  }
}

object AdaptiveWrites {
  private[shufflewrites] val Goal = TreeNodeTag[() => WriteGoal]("apportion.writeGoal")
  private val Why = TreeNodeTag[ValueSource]("apportion.writeReason")

  /** Spark may change the number of partitions of these shuffles. */
  private val Origins = Set[ShuffleOrigin](ENSURE_REQUIREMENTS, REPARTITION_BY_COL, REBALANCE_PARTITIONS_BY_COL)

  /** Partitions for each task that the bytes of all inputs need: a shuffle may have more bytes than the files below it. */
  private val Headroom = 2L
  private val MaxByBytes = 8192L
  private val Max = 32768L

  /** Partitions that the tasks need which the query or a setting asks for, so that ranges are nearly even. */
  private def partitionsFor(policy: Policy): Long = {
    val tasks = policy.parallelism.getOrElse(policy.lowerBound)
    tasks * (if (policy.balanced) 8L else if (Integer.bitCount(tasks) > 1) 2L else 1L)
  }

  /** Why a shuffle has its number of partitions, and who writes it; `None` if the query or an operator sets the number. */
  private[apportion] def why(exchange: SparkPlan): Option[ValueSource] = exchange.getTagValue(Why)

  private def isAdaptive(group: ExchangeGroup): Boolean = {
    val exchanges = pending(group)
    group.forbidden.isEmpty && exchanges.nonEmpty && exchanges.forall(canBeAdaptive)
  }

  private def pending(group: ExchangeGroup): Seq[ShuffleExchangeExec] =
    group.leaves.map(_.node).collect { case exchange: ShuffleExchangeExec => exchange }

  private def canBeAdaptive(exchange: ShuffleExchangeExec): Boolean =
    Origins(exchange.shuffleOrigin) && withNumber(exchange.outputPartitioning, 1).isDefined && !isPipelined(exchange) &&
      !exchange.logicalLink.exists {
        case rebalance: RebalancePartitions => rebalance.optNumPartitions.isDefined
        case _                              => false
      }

  /** Whether a stage fills a cached table. Spark then knows its partitions, and drops an exchange if others have as many. */
  private def readsCacheToFill(node: SparkPlan): Boolean = node match {
    case _: Exchange                     => false
    case scan: InMemoryTableScanExec     => !scan.isMaterialized
    case stage: TableCacheQueryStageExec => !stage.isMaterialized
    case _                               => node.children.exists(readsCacheToFill)
  }

  /**
   * Whether Spark may run an exchange once for two plans of a query, of which one may keep Spark's number of partitions. Then
   * both have to keep it. Unions, repartitions and cached tables keep numbers.
   */
  private def isShared(exchange: ShuffleExchangeExec, plans: SharedPlans): Boolean =
    plans.exists {
      case _: RepartitionOperation | _: Union | _: InMemoryRelation => true
      case _                                                        => false
    } &&
      exchange.child.collectFirst { case node if node.logicalLink.isDefined => node.logicalLink.get }.exists {
        case aggregate: Aggregate => plans.isShared(aggregate) || plans.isShared(aggregate.child)
        case plan                 => plans.isShared(plan)
      }

  /** From Spark 4.3 on, an exchange has the field `pipelined`. */
  private def isPipelined(exchange: ShuffleExchangeExec): Boolean = exchange.productIterator.contains(true)

  private def withNumber(partitioning: Partitioning, n: Int): Option[Partitioning] = partitioning match {
    case hash: HashPartitioning   => Some(hash.copy(numPartitions = n))
    case range: RangePartitioning => Some(range.copy(numPartitions = n))
    case _                        => None
  }
}

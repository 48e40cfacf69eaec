package io.apportion.sizing

import scala.annotation.tailrec

import io.apportion.decision.{Policy, ShuffleDefaults, SubpartitionFormula}
import io.apportion.groups.{ExchangeGroup, GroupRead, UserRepartitions}
import io.apportion.history.History
import io.apportion.memory.operators.RowHolders
import io.apportion.outcomes.EarlierRuns
import io.apportion.rules.{Guarded, ValidChanges}
import io.apportion.settings.{SessionPolicy, Settings}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, SortMergeJoinExec}
import org.apache.spark.sql.internal.SQLConf

/**
 * Sets the number of partitions of each shuffle before it runs, from an interval that is likely to contain its bytes
 * (see [[SubpartitionFormula]]). Spark's own number stays if the query or Spark relies on it.
 */
case class SubpartitionCounts(session: SparkSession) extends Guarded[SparkPlan] {
  import SubpartitionCounts._

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    UserRepartitions.clearKeptRepartitions(plan)
    val query = newQuery(plan)
    val choices = choicesFor(plan, query)
    val changed = ValidChanges.applyAll(plan, choices)(change)
    val isFinal = choices.filter(_.isFinal).flatMap(_.keys).toSet
    // Take the numbers from the plan: ValidChanges may have refused a choice that breaks its requirements.
    changed.foreach {
      case exchange: ShuffleExchangeExec =>
        val key = query.keys.of(exchange)
        if (isFinal(key) || query.isShared(exchange))
          query.registry.choose(key, exchange.outputPartitioning.numPartitions)
      case _ =>
    }
    changed
  }

  override protected def applyWhenOff(plan: SparkPlan): SparkPlan = {
    UserRepartitions.clearKeptRepartitions(plan)
    plan
  }

  /** Changes no number. Tags each exchange with the number that Apportion would choose. */
  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    UserRepartitions.clearKeptRepartitions(plan)
    val byExchange = choiceOf(choicesFor(plan, newQuery(plan)))
    plan.foreach {
      case exchange: ShuffleExchangeExec =>
        byExchange.get(exchange.id).foreach { choice =>
          exchange.setTagValue(Why, choice.why.copy(text = s"would be ${choice.n}: ${choice.why.text}"))
        }
      case _ =>
    }
    plan
  }

  private def newQuery(plan: SparkPlan): Query =
    new Query(ShuffleRegistry.of(plan), new SessionPolicy(conf, session.sparkContext))

  private def choicesFor(plan: SparkPlan, query: Query): Seq[Choice] = {
    val (changeable, others) = groupsOf(plan).partition(isChangeable(_, query))
    val keptCounts =
      others.flatMap(exchangesOf).map(exchange => query.keys.of(exchange) -> exchange.outputPartitioning.numPartitions)
    val fixedCounts = keptCounts.toMap ++ query.keys.running(plan)
    reconcile(changeable.map(choose(_, query, fixedCounts)), readTogether(plan))
  }

  /**
   * Groups of all fragments of a plan. Spark runs no shuffle read rules on the last stage of a cached plan, so the
   * shuffles that this stage reads keep Spark's number.
   */
  private def groupsOf(plan: SparkPlan): Seq[ExchangeGroup] = {
    val last = ExchangeGroup.collect(plan)
    val isCached = !conf.getConf(SQLConf.ADAPTIVE_EXECUTION_APPLY_FINAL_STAGE_SHUFFLE_OPTIMIZATIONS)
    val inLast =
      if (isCached) last.map(_.copy(keepsCount = Some("Spark keeps the partitions of a cached plan"))) else last
    inLast ++ plan.collect { case exchange: Exchange => ExchangeGroup.collect(exchange.child) }.flatten
  }

  private def exchangesOf(group: ExchangeGroup): Seq[ShuffleExchangeExec] =
    group.leaves.map(_.node).collect { case exchange: ShuffleExchangeExec => exchange }

  /**
   * Whether Apportion may change the number of partitions of a group. An exchange that also occurs in a subquery keeps
   * Spark's number, as Spark plans the main query and each subquery separately.
   */
  private def isChangeable(group: ExchangeGroup, query: Query): Boolean =
    group.forbidden.isEmpty && group.keepsCount.isEmpty && group.leaves.map(_.node).forall {
      case exchange: ShuffleExchangeExec =>
        !isGivenByQuery(exchange) && ShuffleKey.hasNumber(exchange) && !query.isShared(exchange)
      case _ => false
    }

  private def isGivenByQuery(exchange: ShuffleExchangeExec): Boolean = exchange.logicalLink.exists {
    case rebalance: RebalancePartitions => rebalance.optNumPartitions.isDefined
    case _                              => false
  }

  /**
   * Chooses the number of partitions of a group.
   *
   * @param fixedCounts numbers of partitions in this plan that can no longer change
   */
  private def choose(
      group: ExchangeGroup,
      query: Query,
      fixedCounts: Map[ShuffleKey, Int]
  ): Choice = {
    val exchanges = exchangesOf(group)
    val earlier = EarlierRuns.of(session).forGroup(group, GroupRead.policy(group, query.settings, None))
    val policy = earlier.policy
    val keys = exchanges.map(query.keys.of)
    val (preferred, why) =
      countWithReason(exchanges.zip(RowHolders.of(group)), earlier.memoryPerByte, query.defaults, policy)
    val sufficient = preferred.min(query.defaults.partitions).max(SubpartitionFormula.minimum(policy))
    // Equal shuffles have the same number, so that Spark runs them once. If the first number is now known to be too
    // low, the shuffle runs again with a higher number, as tasks that are too large would cost more.
    val first =
      keys
        .flatMap(fixedCounts.get)
        .maxOption
        .orElse(keys.flatMap(query.registry.number).maxOption)
        .filter(_ >= sufficient)
    Choice(
      exchanges.map(_.id).toSet,
      keys.toSet,
      first.getOrElse(preferred),
      isFixed = first.isDefined,
      first
        .filter(_ != preferred)
        .fold(why)(n => PartitionsReason("same-shuffle", s"the same shuffle has $n elsewhere in the query")),
      isFinal = exchanges.exists(isReady)
    )
  }

  /** Whether Spark starts an exchange now. All stages below it have finished, so its estimate cannot improve. */
  private def isReady(exchange: ShuffleExchangeExec): Boolean = !exchange.child.exists {
    case stage: QueryStageExec => !stage.isMaterialized
    case _: Exchange           => true
    case _                     => false
  }

  /**
   * Number of partitions of exchanges that are read together, and its reason.
   *
   * @param exchanges each exchange with the rows that are held of it
   * @param measured  bytes of memory for one stored byte in an earlier run
   */
  private def countWithReason(
      exchanges: Seq[(ShuffleExchangeExec, RowHolders)],
      measured: Option[Double],
      defaults: ShuffleDefaults,
      policy: Policy
  ): (Int, PartitionsReason) =
    if (Settings.Subpartitions.get(conf) != "estimated") {
      val text = s"spark.sql.shuffle.partitions, ${defaults.partitions}"
      (SubpartitionFormula.unestimated(defaults, policy), PartitionsReason("spark", text))
    } else {
      val (outputs, source) = likelyOutputs(exchanges.map(_._1))
      val output = outputs.reduce(_ + _)
      val estimated =
        exchanges.zip(outputs).map { case ((exchange, rows), each) => rows.estimate(each.expanded, exchange) }
      val sum = estimated.reduce(_ + _)
      val held = measured.fold(sum)(ratio => sum.max(output.stored.scaled(ratio, ratio)))
      val bytes = if (policy.rowBytes) output.expanded else output.stored
      val rows = exchanges.zip(outputs).map { case ((exchange, _), each) => each.rowsPerTask(exchange.output) }
      (
        SubpartitionFormula.of(bytes, output.tasks, defaults, policy, held, outputs.map(_.perTask).max, rows.max),
        PartitionsReason(source, s"$source of $bytes", Some(bytes))
      )
    }

  /** Likely output of each of these exchanges, and the source of all: `history` or `estimate`. */
  private def likelyOutputs(exchanges: Seq[ShuffleExchangeExec]): (Seq[OutputEstimate], String) = {
    val history = History.of(session)
    val remembered = exchanges.map(exchange => history.flatMap(ExchangeHistory.predict(_, exchange)))
    val outputs = exchanges.zip(remembered).map { case (exchange, known) =>
      known.foldLeft(OutputEstimate.of(exchange))(_ corrected _)
    }
    (outputs, if (remembered.exists(_.isDefined)) "history" else "estimate")
  }

  /**
   * Sets of ids of the exchanges below both sides of a broadcast join. Spark may run the join as a join of two shuffles
   * once it knows their sizes, so these exchanges need the same number of partitions.
   */
  private def readTogether(plan: SparkPlan): Seq[Set[Int]] = plan
    .collect { case join: BroadcastHashJoinExec =>
      val sides = join.children.map {
        case exchange: Exchange => exchange.child
        case side               => side
      }
      val shuffledJoin =
        SortMergeJoinExec(join.leftKeys, join.rightKeys, join.joinType, join.condition, join.left, join.right)
      val areClustered = sides.zip(shuffledJoin.requiredChildDistribution).forall { case (side, distribution) =>
        side.outputPartitioning.satisfies(distribution)
      }
      if (areClustered) sides.flatMap(ExchangeGroup.collect).flatMap(exchangesOf).map(_.id).toSet else Set.empty[Int]
    }
    .filter(_.size > 1)

  /**
   * Gives the same number to choices that share a key or a set in `together`: a fixed number if there is one, otherwise
   * the largest number.
   */
  private def reconcile(choices: Seq[Choice], together: Seq[Set[Int]]): Seq[Choice] = {
    val placed = for ((exchanges, place) <- together.zipWithIndex; exchange <- exchanges) yield exchange -> place
    val places = placed.groupMap(_._1)(_._2)
    reconcile(
      choices.map(choice => choice -> (choice.keys.toSet[Any] ++ choice.exchanges.flatMap(places.getOrElse(_, Nil))))
    )
  }

  /** @param linked choices with their links, which are the keys and sets that choices can share */
  @tailrec private def reconcile[Link](linked: Seq[(Choice, Set[Link])]): Seq[Choice] = {
    val best = linked
      .flatMap { case (choice, links) => links.toSeq.map(_ -> choice) }
      .groupMapReduce(_._1)(_._2)((one, other) => Seq(one, other).maxBy(_.weight))
    val next = linked.map { case (choice, links) =>
      val first = links.toSeq.map(best).maxBy(_.weight)
      choice.copy(n = first.n, isFixed = first.isFixed, why = first.why) -> links
    }
    if (next == linked) linked.map(_._1) else reconcile(next)
  }

  private def choiceOf(choices: Seq[Choice]): Map[Int, Choice] =
    (for (choice <- choices; id <- choice.exchanges) yield id -> choice).toMap

  private def change(plan: SparkPlan, choices: Seq[Choice]): SparkPlan = {
    val byExchange = choiceOf(choices)
    plan.transformDown { case exchange: ShuffleExchangeExec =>
      byExchange.get(exchange.id).fold(exchange) { choice =>
        val changed = ShuffleKey.withNumber(exchange, choice.n)
        changed.copyTagsFrom(exchange)
        changed.setTagValue(Why, choice.why)
        changed.setTagValue(Planned, exchange.outputPartitioning.numPartitions)
        changed
      }
    }
  }
}

object SubpartitionCounts {

  /** State that all choices for one plan of a query use. */
  private final class Query(val registry: ShuffleRegistry, val settings: SessionPolicy) {
    val keys = new ShuffleKeys
    val defaults: ShuffleDefaults = settings.shuffleDefaults

    /** Whether an exchange can also occur in a subquery. */
    def isShared(exchange: ShuffleExchangeExec): Boolean =
      exchange.child
        .collectFirst { case node if node.logicalLink.isDefined => node.logicalLink.get }
        .exists(registry.isShared)
  }

  /**
   * Number of partitions for the exchanges of a group.
   *
   * @param exchanges ids of the exchanges
   * @param n         number of partitions
   * @param isFixed   whether an equal shuffle already has this number
   * @param isFinal   whether the number can no longer change
   */
  private final case class Choice(
      exchanges: Set[Int],
      keys: Set[ShuffleKey],
      n: Int,
      isFixed: Boolean,
      why: PartitionsReason,
      isFinal: Boolean
  ) {
    def weight: (Boolean, Int) = (isFixed, n)
  }

  private val Why = TreeNodeTag[PartitionsReason]("apportion.subpartitions")
  private val Planned = TreeNodeTag[Int]("apportion.plannedSubpartitions")

  /** Why an exchange has its number of partitions, if Apportion chose it. */
  def why(exchange: SparkPlan): Option[PartitionsReason] = exchange.getTagValue(Why)

  /** Number of partitions that Spark had planned for an exchange, if Apportion chose its number. */
  def planned(exchange: SparkPlan): Option[Int] = exchange.getTagValue(Planned)
}

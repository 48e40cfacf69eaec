package io.apportion.sizing

import scala.annotation.tailrec

import io.apportion.decision.{Policy, ShuffleDefaults, SubpartitionFormula}
import io.apportion.groups.{ExchangeGroup, GroupRead, UserRepartitions}
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
 * Before a shuffle runs, sets its number of partitions from the interval in which its bytes are likely to lie; see
 * [[SubpartitionFormula]]. Spark's own number stays wherever the query or Spark relies on it.
 */
case class SubpartitionCounts(session: SparkSession) extends Guarded[SparkPlan] {
  import SubpartitionCounts._

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    UserRepartitions.forgetKept(plan)
    val query = newQuery(plan)
    val choices = choicesFor(plan, query)
    val changed = ValidChanges.applyAll(plan, choices)(change)
    val isFinal = choices.filter(_.isFinal).flatMap(_.keys).toSet
    // The numbers as they are in the plan, also where a choice would have broken its requirements.
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
    UserRepartitions.forgetKept(plan)
    plan
  }

  /** Every number stays as it is, and the exchanges note which one would have been chosen. */
  override protected def applyObserved(plan: SparkPlan): SparkPlan = {
    UserRepartitions.forgetKept(plan)
    val byExchange = choiceOf(choicesFor(plan, newQuery(plan)))
    plan.foreach {
      case exchange: ShuffleExchangeExec =>
        byExchange.get(exchange.id).foreach(choice => exchange.setTagValue(Why, s"would be ${choice.n}: ${choice.why}"))
      case _ =>
    }
    plan
  }

  private def newQuery(plan: SparkPlan): Query =
    new Query(ShuffleRegistry.of(plan), new SessionPolicy(conf, session.sparkContext))

  private def choicesFor(plan: SparkPlan, query: Query): Seq[Choice] = {
    val (changeable, others) = groupsOf(plan).partition(isChangeable(_, query))
    val kept =
      others.flatMap(exchangesOf).map(exchange => query.keys.of(exchange) -> exchange.outputPartitioning.numPartitions)
    val settled = kept.toMap ++ query.keys.running(plan)
    agreed(changeable.map(choose(_, query, settled)), readTogether(plan))
  }

  /** The groups of each plan fragment. In the last stage of a cached plan Spark changes no read, so N has to be Spark's there. */
  private def groupsOf(plan: SparkPlan): Seq[ExchangeGroup] = {
    val last = ExchangeGroup.collect(plan)
    val isCached = !conf.getConf(SQLConf.ADAPTIVE_EXECUTION_APPLY_FINAL_STAGE_SHUFFLE_OPTIMIZATIONS)
    val inLast =
      if (isCached) last.map(_.copy(keepsCount = Some("Spark keeps the partitions of a cached plan"))) else last
    inLast ++ plan.collect { case exchange: Exchange => ExchangeGroup.collect(exchange.child) }.flatten
  }

  private def exchangesOf(group: ExchangeGroup): Seq[ShuffleExchangeExec] =
    group.leaves.map(_.node).collect { case exchange: ShuffleExchangeExec => exchange }

  /** What occurs in a subquery as well keeps Spark's number: each plan of the query is planned without knowing the others. */
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

  /** @param settled numbers of shuffles in this plan that can be no others any more */
  private def choose(
      group: ExchangeGroup,
      query: Query,
      settled: Map[ShuffleKey, Int]
  ): Choice = {
    val exchanges = exchangesOf(group)
    val policy = GroupRead.policy(group, query.settings, None)
    val keys = exchanges.map(query.keys.of)
    val (own, why) = estimated(exchanges, query.defaults, policy)
    val enough = own.min(query.defaults.partitions).max(SubpartitionFormula.least(policy))
    // Where the first choice is not enough by what is known now, the shuffle runs once more, but not in tasks that are too large.
    val first =
      keys.flatMap(settled.get).maxOption.orElse(keys.flatMap(query.registry.number).maxOption).filter(_ >= enough)
    Choice(
      exchanges.map(_.id).toSet,
      keys.toSet,
      first.getOrElse(own),
      isFixed = first.isDefined,
      first.filter(_ != own).fold(why)(n => s"the same shuffle has $n elsewhere in the query"),
      isFinal = exchanges.exists(isReady)
    )
  }

  /** Whether Spark starts an exchange now: all stages below it have finished, so no later plan of it knows more. */
  private def isReady(exchange: ShuffleExchangeExec): Boolean = !exchange.child.exists {
    case stage: QueryStageExec => !stage.isMaterialized
    case _: Exchange           => true
    case _                     => false
  }

  /** N of exchanges that are read together, by their bytes if these are to be estimated, and what it was made of. */
  private def estimated(
      exchanges: Seq[ShuffleExchangeExec],
      defaults: ShuffleDefaults,
      policy: Policy
  ): (Int, String) =
    if (Settings.Subpartitions.get(conf) != "estimated")
      (SubpartitionFormula.unestimated(defaults, policy), s"spark.sql.shuffle.partitions, ${defaults.partitions}")
    else {
      val (output, source) = likely(exchanges)
      val bytes = if (policy.rowBytes) output.expanded else output.stored
      (SubpartitionFormula.of(bytes, output.tasks, defaults, policy), s"$source of $bytes")
    }

  /** What exchanges together are likely to put out, and where it is known from. */
  private def likely(exchanges: Seq[ShuffleExchangeExec]): (OutputEstimate, String) = {
    val history = ExchangeHistory.of(session)
    val remembered = exchanges.map(exchange => history.flatMap(ExchangeHistory.predict(_, exchange)))
    val outputs = exchanges.zip(remembered).map { case (exchange, known) =>
      known.foldLeft(OutputEstimate.of(exchange))(_ corrected _)
    }
    (outputs.reduce(_ + _), if (remembered.exists(_.isDefined)) "history" else "estimate")
  }

  /** Exchanges below both sides of a broadcast join that Spark could run as a join of two shuffles, once it knows their sizes. */
  private def readTogether(plan: SparkPlan): Seq[Set[Int]] = plan
    .collect { case join: BroadcastHashJoinExec =>
      val sides = join.children.map {
        case exchange: Exchange => exchange.child
        case side               => side
      }
      val ofShuffles =
        SortMergeJoinExec(join.leftKeys, join.rightKeys, join.joinType, join.condition, join.left, join.right)
      val areClustered = sides.zip(ofShuffles.requiredChildDistribution).forall { case (side, distribution) =>
        side.outputPartitioning.satisfies(distribution)
      }
      if (areClustered) sides.flatMap(ExchangeGroup.collect).flatMap(exchangesOf).map(_.id).toSet else Set.empty[Int]
    }
    .filter(_.size > 1)

  /** One number for choices that have a key or an exchange of `together` in common: a fixed one, else the largest. */
  private def agreed(choices: Seq[Choice], together: Seq[Set[Int]]): Seq[Choice] = {
    val placed = for ((exchanges, place) <- together.zipWithIndex; exchange <- exchanges) yield exchange -> place
    val places = placed.groupMap(_._1)(_._2)
    agreed(
      choices.map(choice => choice -> (choice.keys.toSet[Any] ++ choice.exchanges.flatMap(places.getOrElse(_, Nil))))
    )
  }

  /** @param linked each choice with all that it may have in common with others */
  @tailrec private def agreed[Link](linked: Seq[(Choice, Set[Link])]): Seq[Choice] = {
    val best = linked
      .flatMap { case (choice, links) => links.toSeq.map(_ -> choice) }
      .groupMapReduce(_._1)(_._2)((one, other) => Seq(one, other).maxBy(_.weight))
    val next = linked.map { case (choice, links) =>
      val first = links.toSeq.map(best).maxBy(_.weight)
      choice.copy(n = first.n, isFixed = first.isFixed, why = first.why) -> links
    }
    if (next == linked) linked.map(_._1) else agreed(next)
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

  /** What the choices for one plan of a query have in common. */
  private final class Query(val registry: ShuffleRegistry, val settings: SessionPolicy) {
    val keys = new ShuffleKeys
    val defaults: ShuffleDefaults = settings.shuffleDefaults

    /** Whether an exchange can occur in a subquery as well. */
    def isShared(exchange: ShuffleExchangeExec): Boolean =
      exchange.child
        .collectFirst { case node if node.logicalLink.isDefined => node.logicalLink.get }
        .exists(registry.isShared)
  }

  /**
   * A number for the exchanges of a group.
   *
   * @param exchanges by id
   * @param isFixed   whether it is the number of an equal shuffle that was chosen before
   * @param why       what the number was made of
   * @param isFinal   whether the number can be no other from now on
   */
  private final case class Choice(
      exchanges: Set[Int],
      keys: Set[ShuffleKey],
      n: Int,
      isFixed: Boolean,
      why: String,
      isFinal: Boolean
  ) {
    def weight: (Boolean, Int) = (isFixed, n)
  }

  private val Why = TreeNodeTag[String]("apportion.subpartitions")
  private val Planned = TreeNodeTag[Int]("apportion.plannedSubpartitions")

  /** What the number of subpartitions of an exchange was made of, if it was chosen here. */
  def why(exchange: SparkPlan): Option[String] = exchange.getTagValue(Why)

  /** How many subpartitions Spark had planned for an exchange whose number was chosen here. */
  def planned(exchange: SparkPlan): Option[Int] = exchange.getTagValue(Planned)
}

package io.apportion.aqe

import scala.annotation.tailrec

import io.apportion.{CaseClass, Guarded}
import io.apportion.conf.{SessionPolicy, Settings}
import io.apportion.decision.{Bytes, SubpartitionCount}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}

/**
 * Before a shuffle runs, gives it a power of two of subpartitions with room for the tasks that are likely to read it, where Spark
 * gives all of them 200. Numbers that the query gives stay, and so do exchanges that must agree with one that cannot change.
 */
case class SubpartitionCounts(session: SparkSession) extends Guarded[SparkPlan] {
  import SubpartitionCounts._

  override protected def applyGuarded(plan: SparkPlan): SparkPlan = {
    UserRepartitions.forgetKept(plan)
    val settings = new SessionPolicy(conf, session.sparkContext)
    val groups = groupsOf(plan)
    val shuffles = new SameShuffles
    lazy val settled = groups.flatMap(besideRunning(_, shuffles)).toMap ++ shuffles.running(plan)
    val choices = agreed(groups.filter(isChangeable).map(choose(_, settings, shuffles, settled)))
    Validated.applyAll(plan, choices)(change)
  }

  private def groupsOf(plan: SparkPlan): Seq[ExchangeGroup] =
    ExchangeGroup.collect(plan) ++ plan.collect { case exchange: Exchange =>
      ExchangeGroup.collect(exchange.child)
    }.flatten

  /** Shuffles that are read together with one that runs: they have its number. */
  private def besideRunning(group: ExchangeGroup, shuffles: SameShuffles): Seq[(SameShuffle, Int)] =
    group.leaves.map(_.node).collect {
      case exchange: ShuffleExchangeExec if group.stages.nonEmpty =>
        shuffles.of(exchange) -> exchange.outputPartitioning.numPartitions
    }

  private def isChangeable(group: ExchangeGroup): Boolean = group.forbidden.isEmpty && group.leaves.map(_.node).forall {
    case exchange: ShuffleExchangeExec =>
      !isGivenByQuery(exchange) && withCount(exchange.outputPartitioning, 1).isDefined
    case _ => false
  }

  private def isGivenByQuery(exchange: ShuffleExchangeExec): Boolean = exchange.logicalLink.exists {
    case rebalance: RebalancePartitions => rebalance.optNumPartitions.isDefined
    case _                              => false
  }

  /** @param settled numbers of shuffles that can be no others any more */
  private def choose(
      group: ExchangeGroup,
      settings: SessionPolicy,
      shuffles: SameShuffles,
      settled: Map[SameShuffle, Int]
  ): Choice = {
    val exchanges = group.leaves.map(_.node).collect { case exchange: ShuffleExchangeExec => exchange }
    val policy = GroupRead.policy(group, settings, None)
    val same = exchanges.map(shuffles.of).toSet
    val fixed = same.flatMap(settled.get).maxOption.filter(_ >= SubpartitionCount.least(policy))
    val (n, why) = likely(exchanges) match {
      case Some((output, source)) =>
        val bytes = if (policy.rowBytes) output.expanded else output.stored
        (SubpartitionCount.of(bytes, output.tasks, policy), s"$source of ${Bytes.text(bytes)}")
      case None =>
        val planned = group.leaves.head.subpartitions
        (SubpartitionCount.unestimated(planned, policy), s"power of two for Spark's $planned")
    }
    Choice(exchanges.map(_.id).toSet, same, fixed.getOrElse(n), fixed.isDefined, why)
  }

  /** What exchanges together are likely to put out, if that is to be estimated, and where it is known from. */
  private def likely(exchanges: Seq[ShuffleExchangeExec]): Option[(LikelyOutput, String)] =
    if (Settings.Subpartitions.get(conf) != "estimated") None
    else {
      val history = ExchangeHistory.of(session)
      val remembered = exchanges.map(exchange => history.flatMap(ExchangeHistory.predict(_, exchange)))
      val source = if (remembered.exists(_.isDefined)) "history" else "estimate"
      exchanges
        .zip(remembered)
        .map { case (exchange, known) => known.orElse(LikelyOutput.of(exchange)) }
        .reduce((sum, next) => for (one <- sum; other <- next) yield one + other)
        .map(_ -> source)
    }

  /** One number for the shuffles that Spark would run once if they were equal: that of one that runs already, else the largest. */
  @tailrec private def agreed(choices: Seq[Choice]): Seq[Choice] = {
    val best = choices
      .flatMap(choice => choice.same.map(_ -> choice))
      .groupMapReduce(_._1)(_._2)((one, other) => Seq(one, other).maxBy(_.weight))
    val next = choices.map { choice =>
      val first = choice.same.map(best).maxBy(_.weight)
      choice.copy(n = first.n, isFixed = first.isFixed, why = first.why)
    }
    if (next == choices) choices else agreed(next)
  }

  private def change(plan: SparkPlan, choices: Seq[Choice]): SparkPlan = plan.transformDown {
    case exchange: ShuffleExchangeExec =>
      choices.find(_.exchanges.contains(exchange.id)).fold(exchange) { choice =>
        val changed =
          if (exchange.outputPartitioning.numPartitions == choice.n) exchange
          else
            withCount(exchange.outputPartitioning, choice.n).fold(exchange)(CaseClass.withFirst(exchange, _))
        changed.copyTagsFrom(exchange)
        changed.setTagValue(Why, choice.why)
        changed.setTagValue(Planned, exchange.outputPartitioning.numPartitions)
        changed
      }
  }

  private def withCount(partitioning: Partitioning, n: Int): Option[Partitioning] = partitioning match {
    case hash: HashPartitioning    => Some(hash.copy(numPartitions = n))
    case range: RangePartitioning  => Some(range.copy(numPartitions = n))
    case _: RoundRobinPartitioning => Some(RoundRobinPartitioning(n))
    case _                         => None
  }
}

object SubpartitionCounts {

  /**
   * A number for the exchanges of a group.
   *
   * @param exchanges by id
   * @param isFixed   whether one of them would be read from a shuffle that runs already
   * @param why       what the number was made of
   */
  private final case class Choice(exchanges: Set[Int], same: Set[SameShuffle], n: Int, isFixed: Boolean, why: String) {
    def weight: (Boolean, Int) = (isFixed, n)
  }

  private val Why = TreeNodeTag[String]("apportion.subpartitions")
  private val Planned = TreeNodeTag[Int]("apportion.plannedSubpartitions")

  /** What the number of subpartitions of an exchange was made of, if it was chosen here. */
  def why(exchange: SparkPlan): Option[String] = exchange.getTagValue(Why)

  /** How many subpartitions Spark had planned for an exchange whose number was chosen here. */
  def planned(exchange: SparkPlan): Option[Int] = exchange.getTagValue(Planned)
}

package io.apportion.joins

import scala.collection.mutable

import io.apportion.decision.ranges.Bytes
import io.apportion.groups.ExchangeGroup
import io.apportion.memory.RowHolders
import io.apportion.report.ReportSource
import io.apportion.rules.{Guarded, SharedPlans}
import io.apportion.settings.SessionPolicy
import org.apache.spark.apportion.Cluster
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions.{Expression, UnevaluableAggregateFunc, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec
import org.apache.spark.sql.internal.SQLConf

/**
 * Joins finished shuffles with hash tables, where Spark would sort both sides. A hash table cannot spill, so the whole side of
 * the join has to fit the memory that a task surely gets. Then it fits for any skew of the keys and any number of tasks.
 * A join that a subquery needs too stays as Spark has planned it: Spark plans the query and the subquery separately, and the
 * second one reuses shuffles above the join only if both sort.
 *
 * Spark has a rule for this too, but it compares stored bytes, and it is off by default (`DynamicJoinSelection`, 3.5 to 4.2;
 * `ConvertSortMergeJoinToShuffledHashJoin`, 4.3).
 */
final class PreferHashJoins(override protected val session: SparkSession) extends Guarded[LogicalPlan] {

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan =
    if (isOffHeap || !plan.exists(_.isInstanceOf[Join])) plan
    else {
      val memory = new SessionPolicy(conf, session.sparkContext).taskMemory(broadcasts = 0)
      memory.fold(plan)(new HashJoins(conf, _, plan, SharedPlans.of(session)).choose)
    }

  /** Tables of long keys are in the heap even if Spark keeps rows outside of it (`LongToUnsafeRowMap`), so nothing is known. */
  private def isOffHeap = Cluster.isOffHeap(session.sparkContext)
}

object PreferHashJoins extends ReportSource {
  private[joins] val Why = TreeNodeTag[String]("apportion.hashJoin")

  /** Why a join that reads a group is a hash join, if this rule has chosen it. */
  override def remark(group: ExchangeGroup): Option[String] =
    group.root.find(_.isInstanceOf[ShuffledHashJoinExec]).flatMap(_.logicalLink).flatMap(_.getTagValue(Why))
}

/**
 * A hash table.
 *
 * @param shuffle the id of the exchange that its rows come from
 * @param bytes upper bound
 */
private case class HashTable(shuffle: Int, bytes: Long)

/**
 * Chooses the joins of a plan.
 *
 * @param memory bytes of the memory of a task
 * @param running the plans of the query that runs, if it has subqueries. The plan is not among them if it is that of a table
 *                that is cached, and there are none for the RDD of a query.
 */
private final class HashJoins(conf: SQLConf, memory: Long, plan: LogicalPlan, running: => Option[SharedPlans]) {
  // One of Spark's objects that know joins. The trait behind it has other methods in other versions.
  import InjectRuntimeFilter.{canBroadcastBySize, canBuildBroadcastLeft, canBuildBroadcastRight}

  private val Hash = Some(HintInfo(Some(SHUFFLE_HASH)))

  /**
   * Bytes that the tables of the plan may take. Spark gives each of `n` running tasks at least 1 / 2n of an executor's memory
   * (`ExecutionMemoryPool`), and blocks that are cached later may take half of that (`spark.memory.storageFraction`). No table
   * can have more than 8 GiB (`LongToUnsafeRowMap`).
   */
  private var free = (memory / 4).min(8L << 30)

  /**
   * Whether a table fits together with those of all joins that read its shuffle. These choose alike, as Spark runs copies of a
   * join once if all of them are planned alike.
   */
  private val fits = mutable.Map.empty[HashTable, Boolean]
  private lazy val reads =
    plan.collectLeaves().flatMap(shuffle).groupBy(_.shuffle.id).map { case (id, stages) => id -> stages.size }

  private lazy val shared = running ++ SharedPlans.in(SharedPlans.beforeStages(plan))

  def choose: LogicalPlan = {
    plan.foreach(node => free -= chosenBytes(node))
    choose(plan, sortedBy = Nil)
  }

  private def take(table: HashTable): Boolean = fits.getOrElseUpdate(
    table, {
      val doFit = table.bytes <= free / reads(table.shuffle)
      if (doFit) free -= table.bytes * reads(table.shuffle)
      doFit
    }
  )

  /** @param sortedBy keys by which the operator above sorts the rows, unless they have this order already */
  private def choose(plan: LogicalPlan, sortedBy: Seq[Expression]): LogicalPlan = plan match {
    case join @ ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, left, right, hint) =>
      val table =
        if (!isFree(join) || isSame(leftKeys, sortedBy) || isSame(rightKeys, sortedBy)) None
        else {
          val isLeftSmaller = left.stats.sizeInBytes <= right.stats.sizeInBytes
          val isRightSmaller = right.stats.sizeInBytes <= left.stats.sizeInBytes
          val ofLeft = if (isLeftSmaller && canBuildBroadcastLeft(join.joinType)) tableOf(left, leftKeys) else None
          val ofRight =
            if (isRightSmaller && canBuildBroadcastRight(join.joinType)) tableOf(right, rightKeys) else None
          val sides = ofLeft.map(_ -> hint.copy(leftHint = Hash)) ++ ofRight.map(_ -> hint.copy(rightHint = Hash))
          sides.headOption.filter { case (table, _) => take(table) }
        }
      val keys = if (table.isEmpty) (leftKeys, rightKeys) else (Nil, Nil)
      val below = join.mapChildren(child => choose(child, if (child eq left) keys._1 else keys._2))
      table.fold(below) { case (table, hint) => hinted(below.asInstanceOf[Join], hint, table.bytes) }
    case _: Project | _: Filter => plan.mapChildren(choose(_, sortedBy))
    case window: Window         => window.mapChildren(choose(_, window.partitionSpec))
    case sort: Sort             => sort.mapChildren(choose(_, if (sort.global) Nil else sort.order.map(_.child)))
    case aggregate: Aggregate   =>
      aggregate.mapChildren(choose(_, if (sorts(aggregate)) aggregate.groupingExpressions else Nil))
    case _ => plan.mapChildren(choose(_, Nil))
  }

  private def hinted(join: Join, hint: JoinHint, bytes: Long): Join = {
    val result = join.copy(hint = hint)
    result.copyTagsFrom(join)
    result.setTagValue(
      PreferHashJoins.Why,
      s"joined by a hash table of at most ${Bytes.text(bytes)} instead of sorts (a task has ${Bytes.text(memory)})"
    )
    result
  }

  /**
   * Whether Spark may sort the rows of an aggregate, as the results of some functions have no fixed length (`AggUtils`), and
   * functions of pandas need the rows of a group one after the other.
   */
  private def sorts(aggregate: Aggregate): Boolean = aggregate.aggregateExpressions.exists(_.exists {
    case _: UnevaluableAggregateFunc => true
    case each: AggregateFunction     => !each.aggBufferAttributes.forall(it => UnsafeRow.isMutable(it.dataType))
    case _                           => false
  })

  /** Bytes of the table of a join that has this hint already. */
  private def chosenBytes(plan: LogicalPlan): Long = plan match {
    case ExtractEquiJoinKeys(_, leftKeys, _, _, _, left, _, JoinHint(Hash, _)) =>
      tableOf(left, leftKeys).fold(0L)(_.bytes)
    case ExtractEquiJoinKeys(_, _, rightKeys, _, _, _, right, JoinHint(_, Hash)) =>
      tableOf(right, rightKeys).fold(0L)(_.bytes)
    case _ => 0
  }

  /**
   * Whether the join would sort, and runs next. The query must not say how to join. Spark may say that a broadcast is not worth
   * it, as most tasks have no rows. A side that is small enough is broadcast.
   */
  private def isFree(join: Join): Boolean = {
    def isBroadcast(side: LogicalPlan, hint: Option[HintInfo]) =
      hint.flatMap(_.strategy).isEmpty && canBroadcastBySize(side, conf)
    val JoinHint(ofLeft, ofRight) = join.hint
    (ofLeft ++ ofRight).flatMap(_.strategy).forall(_ == NO_BROADCAST_HASH) &&
    join.collectLeaves().forall(isFinished) &&
    !(canBuildBroadcastLeft(join.joinType) && isBroadcast(join.left, ofLeft)) &&
    !(canBuildBroadcastRight(join.joinType) && isBroadcast(join.right, ofRight)) &&
    !shared.exists(_.isShared(join))
  }

  private def isFinished(leaf: LogicalPlan): Boolean = leaf match {
    case LogicalQueryStage(_, physical) =>
      physical.collectLeaves().forall {
        case stage: QueryStageExec => stage.isMaterialized
        case _                     => false
      }
    case _ => false
  }

  /** The table with all rows of a side. `None` unless they are those of a finished shuffle that counted them. */
  private def tableOf(side: LogicalPlan, keys: Seq[Expression]): Option[HashTable] = for {
    stage <- shuffle(side) if stage.getRuntimeStatistics.rowCount.isDefined
    table <- RowHolders.table(stage, keys)
  } yield HashTable(stage.shuffle.id, table.atMost.toLong)

  private def shuffle(leaf: LogicalPlan): Option[ShuffleQueryStageExec] = leaf match {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) => Some(stage)
    case _                                                  => None
  }

  private def isSame(keys: Seq[Expression], others: Seq[Expression]): Boolean =
    keys.corresponds(others)(_.semanticEquals(_))
}

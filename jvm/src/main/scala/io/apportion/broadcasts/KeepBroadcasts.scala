package io.apportion.broadcasts

import scala.util.Try

import io.apportion.decision.SubpartitionFormula
import io.apportion.rules.{CurrentQuery, Guarded}
import io.apportion.sizing.SubpartitionCounts
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}
import org.apache.spark.sql.internal.SQLConf

/**
 * Lets Spark broadcast a join side again if it refused only because Apportion made more shuffle partitions. Spark
 * does not broadcast a side if too few of its shuffle partitions have rows
 * (`spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin`). It then also shuffles the other side. The more
 * partitions there are, the smaller is the share that has rows. This rule removes the refusal if enough partitions
 * would have rows with Spark's own number of them.
 *
 * Spark 3.5 to 4.2 (`DynamicJoinSelection`) refuses with the hint NO_BROADCAST_HASH, or with SHUFFLE_HASH if it also
 * prefers a shuffled hash join (`spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold`). Spark 4.3
 * (`DemoteBroadcastHashJoin`) only refuses with NO_BROADCAST_HASH. If Apportion makes fewer partitions than Spark,
 * they are larger, and Spark may prefer a shuffled hash join less often.
 */
case class KeepBroadcasts(session: SparkSession) extends Guarded[LogicalPlan] {
  import KeepBroadcasts.Refusals

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case join: Join if strategies(join).exists(Refusals.contains) && sides(join).forall(isFilled) =>
      val removed = Refusals.filter { case (strategy, _) => strategy != SHUFFLE_HASH || !isRequested(join) }
      def withoutRefusal(hint: HintInfo) =
        hint.copy(strategy = hint.strategy.flatMap(strategy => removed.getOrElse(strategy, Some(strategy))))
      join.copy(hint = JoinHint(join.hint.leftHint.map(withoutRefusal), join.hint.rightHint.map(withoutRefusal)))
  }

  private def strategies(join: Join): Seq[JoinStrategyHint] =
    (join.hint.leftHint ++ join.hint.rightHint).flatMap(_.strategy).toSeq

  /**
   * Whether the query itself requests SHUFFLE_HASH: then the hint is there before any stage has run. Only Spark can set
   * NO_BROADCAST_HASH.
   */
  private def isRequested(join: Join): Boolean = {
    val requested = for {
      query <- CurrentQuery.current(session).flatMap(CurrentQuery.running).toSeq
      optimized <- CurrentQuery.optimizedPlan(query).toSeq
      original <- optimized.collect { case original: Join if isSame(original, join) => original }
    } yield strategies(original).contains(SHUFFLE_HASH)
    val sparkMayPrefer = conf.getConf(SQLConf.ADAPTIVE_MAX_SHUFFLE_HASH_JOIN_LOCAL_MAP_THRESHOLD) > 0
    !sparkMayPrefer || requested.isEmpty || requested.contains(true)
  }

  private def isSame(one: Join, other: Join): Boolean =
    one.joinType == other.joinType && one.condition.map(_.canonicalized) == other.condition.map(_.canonicalized)

  /** Whether enough partitions of a stage would have rows with the number of partitions that Spark planned. */
  private def isFilled(stage: ShuffleQueryStageExec): Boolean = stage.mapStats.forall { stats =>
    val bytes = stats.bytesByPartitionId
    val n = SubpartitionCounts.planned(stage.shuffle).getOrElse(bytes.length).min(bytes.length)
    val filled = SubpartitionFormula.filled(bytes, n)
    filled == 0 || filled >= n * conf.nonEmptyPartitionRatioForBroadcastJoin
  }

  /** Inputs of a join that are finished shuffles. */
  private def sides(join: Join): Seq[ShuffleQueryStageExec] = join.children.collect {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) if stage.isMaterialized => stage
  }
}

object KeepBroadcasts {

  /** Found by name, because Spark 4.3 does not have this hint: it makes shuffled hash joins in physical plans. */
  private val preferShuffleHash: Option[JoinStrategyHint] =
    Try(Class.forName(s"${classOf[JoinStrategyHint].getPackage.getName}.PREFER_SHUFFLE_HASH$$"))
      .map(_.getField("MODULE$").get(null).asInstanceOf[JoinStrategyHint])
      .toOption

  /**
   * Strategies with which Spark refuses to broadcast, each with the strategy that replaces it when the refusal is
   * removed.
   */
  private val Refusals: Map[JoinStrategyHint, Option[JoinStrategyHint]] =
    Map[JoinStrategyHint, Option[JoinStrategyHint]](NO_BROADCAST_HASH -> None) ++
      preferShuffleHash.map(preferred => SHUFFLE_HASH -> Some(preferred))
}

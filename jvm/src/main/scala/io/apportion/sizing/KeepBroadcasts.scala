package io.apportion.sizing

import scala.util.Try

import io.apportion.decision.SubpartitionFormula
import io.apportion.rules.{CurrentQuery, Guarded}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}
import org.apache.spark.sql.internal.SQLConf

/**
 * Spark does not broadcast what few of a shuffle's subpartitions have rows of, and so shuffles the other side of the join as well
 * (`spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin`). The more subpartitions, the fewer of them have rows. Where there
 * are more than Spark would have made, this takes its verdict back if it would not hold for Spark's own number.
 *
 * The verdict of Spark's `DynamicJoinSelection` (3.5 to 4.2) is the hint NO_BROADCAST_HASH, or SHUFFLE_HASH where it also prefers a
 * hash join of shuffles (`spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold`). That of 4.3, `DemoteBroadcastHashJoin`, is
 * NO_BROADCAST_HASH alone. Fewer subpartitions than Spark would make are larger, so that Spark may prefer such a join less often.
 */
case class KeepBroadcasts(session: SparkSession) extends Guarded[LogicalPlan] {
  import KeepBroadcasts.BySpark

  override protected def applyGuarded(plan: LogicalPlan): LogicalPlan = plan.transformDown {
    case join: Join if strategies(join).exists(BySpark.contains) && sides(join).forall(isFilled) =>
      val taken = BySpark.filter { case (strategy, _) => strategy != SHUFFLE_HASH || !isAsked(join) }
      def allowed(hint: HintInfo) = hint.copy(strategy = hint.strategy.flatMap(own => taken.getOrElse(own, Some(own))))
      join.copy(hint = JoinHint(join.hint.leftHint.map(allowed), join.hint.rightHint.map(allowed)))
  }

  private def strategies(join: Join): Seq[JoinStrategyHint] =
    (join.hint.leftHint ++ join.hint.rightHint).flatMap(_.strategy).toSeq

  /** NO_BROADCAST_HASH is Spark's alone. A query may ask for SHUFFLE_HASH: then it is there before any stage has run. */
  private def isAsked(join: Join): Boolean = {
    val asked = for {
      query <- CurrentQuery.current(session).flatMap(CurrentQuery.running).toSeq
      original <- query.optimizedPlan.collect { case original: Join if isSame(original, join) => original }
    } yield strategies(original).contains(SHUFFLE_HASH)
    conf.getConf(SQLConf.ADAPTIVE_MAX_SHUFFLE_HASH_JOIN_LOCAL_MAP_THRESHOLD) <= 0 || asked.isEmpty || asked.contains(
      true
    )
  }

  private def isSame(one: Join, other: Join): Boolean =
    one.joinType == other.joinType && one.condition.map(_.canonicalized) == other.condition.map(_.canonicalized)

  private def isFilled(stage: ShuffleQueryStageExec): Boolean = stage.mapStats.forall { stats =>
    val bytes = stats.bytesByPartitionId
    val n = SubpartitionCounts.planned(stage.shuffle).getOrElse(bytes.length).min(bytes.length)
    val filled = SubpartitionFormula.filled(bytes, n)
    filled == 0 || filled >= n * conf.nonEmptyPartitionRatioForBroadcastJoin
  }

  /** The inputs of a join that are shuffles that have run. */
  private def sides(join: Join): Seq[ShuffleQueryStageExec] = join.children.collect {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) if stage.isMaterialized => stage
  }
}

object KeepBroadcasts {

  /** By its name: Spark 4.3 has no such hint, and makes hash joins of shuffles in physical plans. */
  private val preferShuffleHash: Option[JoinStrategyHint] =
    Try(Class.forName(s"${classOf[JoinStrategyHint].getPackage.getName}.PREFER_SHUFFLE_HASH$$"))
      .map(_.getField("MODULE$").get(null).asInstanceOf[JoinStrategyHint])
      .toOption

  /** The strategies by which Spark refuses to broadcast, each with what is left of it when that is taken back. */
  private val BySpark: Map[JoinStrategyHint, Option[JoinStrategyHint]] =
    Map[JoinStrategyHint, Option[JoinStrategyHint]](NO_BROADCAST_HASH -> None) ++
      preferShuffleHash.map(preferred => SHUFFLE_HASH -> Some(preferred))
}

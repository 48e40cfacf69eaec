package io.apportion.hints

import java.util.Locale

import org.apache.commons.text.similarity.LevenshteinDistance
import org.apache.spark.sql.catalyst.plans.logical.JoinStrategyHint

/**
 * Names of Apportion's and Spark's hints, with suggestions for misspelt names. `python/apportion/hints/grammar.py` has
 * the same names. A golden file keeps both equal: see [[HintGrammar]].
 */
private[hints] object HintNames {
  val Parallelism = "PARALLELISM"
  val DataVolume = "DATA_VOLUME"
  val BroadcastRatio = "BROADCAST_RATIO"
  val Ranges = "RANGES"
  val SourceParallelism = "SOURCE_PARALLELISM"

  val ours: Seq[String] = Seq(Parallelism, DataVolume, BroadcastRatio, Ranges, SourceParallelism)

  private val spark: Set[String] =
    JoinStrategyHint.strategies.flatMap(_.hintAliases) ++
      Set("COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE")

  /** Names that users of other systems may expect, with the Apportion hint to use instead. */
  private val alsoCalled = Seq("MIN_PARALLELISM", "MAX_PARALLELISM").map(_ -> s"$Parallelism(min, max)").toMap

  private val distance = LevenshteinDistance.getDefaultInstance

  def normal(name: String): String = name.toUpperCase(Locale.ROOT)

  /** The known name that an unknown name probably means: at most a quarter of the letters differ, rounded up. */
  def nearest(name: String): Option[String] =
    if (spark(normal(name))) None
    else alsoCalled.get(normal(name)).orElse(near(name, ours ++ spark.toSeq.sorted))

  def near(name: String, known: Seq[String]): Option[String] = {
    def letters(text: String) = normal(text).filter(_ != '_')
    val (best, difference) = known.map(k => k -> distance(letters(k), letters(name)).intValue).minBy(_._2)
    Option.when(difference * 4 <= math.max(letters(best).length, letters(name).length) + 3)(best)
  }

  /** Whether a table name in a hint, with or without database and catalog, names this table. */
  def isTableNamed(hint: Seq[String], table: Seq[String], sameName: (String, String) => Boolean): Boolean =
    hint.size <= table.size && hint.zip(table.takeRight(hint.size)).forall { case (a, b) => sameName(a, b) }
}

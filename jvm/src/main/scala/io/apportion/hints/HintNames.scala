package io.apportion.hints

import java.util.Locale

import org.apache.commons.text.similarity.LevenshteinDistance
import org.apache.spark.sql.catalyst.plans.logical.JoinStrategyHint

/** The names of hints, Apportion's and Spark's, and which of them a misspelt name was meant to be. */
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

  /** Names that other systems would use, and how the same is written here. */
  private val alsoCalled = Seq("MIN_PARALLELISM", "MAX_PARALLELISM").map(_ -> s"$Parallelism(min, max)").toMap

  private val distance = LevenshteinDistance.getDefaultInstance

  def normal(name: String): String = name.toUpperCase(Locale.ROOT)

  /** What an unknown name was probably meant to be: one with at most a quarter of its letters different. */
  def nearest(name: String): Option[String] =
    if (spark(normal(name))) None
    else alsoCalled.get(normal(name)).orElse(near(name, ours ++ spark.toSeq.sorted))

  def near(name: String, known: Seq[String]): Option[String] = {
    def letters(text: String) = normal(text).filter(_ != '_')
    val (best, difference) = known.map(k => k -> distance(letters(k), letters(name)).intValue).minBy(_._2)
    Option.when(difference * 4 <= math.max(letters(best).length, letters(name).length) + 3)(best)
  }

  /** Whether a hint's name of a table, with or without its database and catalog, is that of this table. */
  def isTableNamed(hint: Seq[String], table: Seq[String], sameName: (String, String) => Boolean): Boolean =
    hint.size <= table.size && hint.zip(table.takeRight(hint.size)).forall { case (a, b) => sameName(a, b) }
}

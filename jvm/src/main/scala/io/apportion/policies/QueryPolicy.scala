package io.apportion.policies

import java.util.concurrent.ConcurrentHashMap

import io.apportion.hints.{BlockHints, PolicyHints}
import io.apportion.settings.{ResourceSettings, SettingEntry, SettingRegistry, Settings}
import org.apache.spark.sql.apportion.QueryValues
import org.apache.spark.sql.internal.SQLConf

/** What the matching rules together set for one query: the first rule that sets a value counts. */
private[policies] final case class QueryPolicy(values: QueryValues, hints: PolicyHints)

private[policies] object QueryPolicy {
  private val logged = ConcurrentHashMap.newKeySet[String]()

  /**
   * @param rules the matching rules, in the order of the file
   * @param conf  conf of the session
   */
  def of(rules: Seq[PolicyRule], conf: SQLConf): QueryPolicy = {
    val (forced, usual) = rules.partition(_.isForced)
    // Later entries of a map replace earlier ones, so the rule that counts comes last.
    val settings =
      (forced ++ usual).reverse.flatMap(rule => rule.settings.map { case (key, value) => (key, value, rule) })
    val values = consistent(
      QueryValues(
        settings.map { case (key, value, _) => key -> value }.toMap,
        settings.map { case (key, _, rule) => key -> rule.source }.toMap
      ),
      conf
    )
    val hints = PolicyHints(
      rules.map(_.hints).foldLeft(BlockHints.none)(_ merged _),
      rules.flatMap(_.blocks),
      forced.flatMap(_.settings.keys).filter(values.values.contains).map(_.stripPrefix(SettingEntry.Prefix)).toSet
    )
    QueryPolicy(values, hints)
  }

  /** The values without the bounds of the rules, if these contradict settings of the session. */
  private def consistent(query: QueryValues, conf: SQLConf): QueryValues =
    SettingRegistry.problems(query.over(conf)).headOption.fold(query) { problem =>
      val bounds = Bounds.map(_.key).filter(query.values.contains)
      if (bounds.isEmpty) query
      else {
        val sources = bounds.flatMap(query.sources.get).map(_.text).distinct
        if (logged.size < MaxLogged && logged.add(problem))
          PolicyFile.log.warn(s"${sources.mkString("; ")}: ${bounds.mkString(", ")} are ignored for a query: $problem.")
        QueryValues(query.values -- bounds, query.sources -- bounds)
      }
    }

  private val Bounds = Seq(
    Settings.MinParallelism,
    Settings.MaxParallelism,
    Settings.Ranges,
    Settings.Rounding,
    ResourceSettings.MinSlots,
    ResourceSettings.MaxSlots
  )
  private val MaxLogged = 1000
}

package io.apportion.policies

import java.util.Locale
import java.util.concurrent.ConcurrentHashMap

import scala.util.control.NonFatal

/**
 * The rules of a policy file. A rule with a condition on exact values is only tested for queries that have one of these
 * values, so that most rules of a large file cost nothing.
 */
private[policies] final class RuleIndex(val rules: Seq[PolicyRule]) {
  private val byKey: Map[ConditionKey, Seq[PolicyRule]] =
    rules.flatMap(rule => rule.conditions.keys.toSeq.flatten.map(_ -> rule)).groupMap(_._1)(_._2)

  /** Rules that were logged because a query took too long to test. */
  private val logged = ConcurrentHashMap.newKeySet[Int]()

  private val kinds: Set[String] = byKey.keySet.map(_.kind)

  private val others: Seq[PolicyRule] = rules.filter(_.conditions.keys.isEmpty)

  /** The rules that match a query, in the order of the file. */
  def matching(query: QueryFacts): Seq[PolicyRule] = {
    val candidates = kinds.iterator.flatMap(valuesOf(query, _)).flatMap(byKey.getOrElse(_, Nil)) ++ others
    candidates.filter(holds(_, query)).toSeq.distinct.sortBy(_.number)
  }

  private def valuesOf(query: QueryFacts, kind: String): Seq[ConditionKey] = {
    def names(tables: Seq[Seq[String]]) =
      // Names of tables ignore case, and paths do not.
      tables.map(_.last).flatMap(name => Seq(name, name.toLowerCase(Locale.ROOT)).distinct)
    val values = kind match {
      case "fingerprint" => Seq(query.fingerprint)
      case "table"       => names(query.reads)
      case "writes"      => names(query.writes)
      case "user"        => Seq(query.user)
      case "application" => Seq(query.application)
      case "jobTag"      => query.jobTags
    }
    values.map(ConditionKey(kind, _))
  }

  /** A pattern that takes too long, or needs too much stack, does not match. */
  private def holds(rule: PolicyRule, query: QueryFacts): Boolean =
    try rule.conditions.hold(query)
    catch {
      case failure @ (NonFatal(_) | _: StackOverflowError) =>
        if (logged.add(rule.number))
          PolicyFile.log.warn(
            s"${PolicyRule.title(rule.number, rule.name)} of the policy file was not tested for a query: $failure. " +
              "Write a simpler regular expression for sql"
          )
        false
    }
}

package io.apportion.policies

import io.apportion.decision.{SourceKind, ValueSource}
import io.apportion.hints.BlockHints

/**
 * A rule of the policy file.
 *
 * @param number   place of the rule in the file, from 1
 * @param settings values by the full names of settings
 * @param hints    hints for the whole query
 * @param blocks   hints for blocks, by the parts of their names
 * @param isForced whether the rule is above the hints in the SQL
 */
private[policies] final case class PolicyRule(
    number: Int,
    name: Option[String],
    conditions: Conditions,
    settings: Map[String, String],
    hints: BlockHints,
    blocks: Seq[(Seq[String], BlockHints)],
    isForced: Boolean
) {
  val source: ValueSource = PolicyRule.source(number, name)
}

private[policies] object PolicyRule {

  /** Source of the values of a rule, for decision records. */
  def source(number: Int, name: Option[String]): ValueSource =
    ValueSource(SourceKind.PolicyRule, s"policy file, ${title(number, name)}")

  def title(number: Int, name: Option[String]): String = s"rule $number${name.fold("")(text => s" ($text)")}"
}

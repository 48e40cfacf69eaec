package io.apportion.settings

/** Settings of what queries and policy files ask for. */
object QuerySettings extends SettingRegistry {
  val Policies: SettingEntry[Option[String]] = setting(
    "policies",
    Category.General,
    "File with rules that set settings and hints for the queries that they match. Apportion reads it again when it " +
      "changes. Set it when Spark starts; sessions cannot change it. Use it to tune jobs whose SQL and settings you " +
      "cannot edit."
  ).staticLocation(Allowed.Location("a YAML or JSON file, such as /folder/policies.yaml or hdfs://host/policies.json"))

  val HintsStrict: SettingEntry[Boolean] = setting(
    "hints.strict",
    Category.Hints,
    "Whether a query fails if one of Apportion's hints is misspelled or cannot be applied. If false, Apportion " +
      "ignores the hint and logs a warning. Set it to true in development and tests."
  ).boolean(default = false)

  override private[apportion] def rules: Seq[RuleSwitch] = Seq(
    RuleSwitch("ResolveBlockHints", "Apportion's hints are removed from queries and not checked."),
    RuleSwitch("ApplyPolicies", "The rules of the policy file have no effect."),
    RuleSwitch("AssignBlocks", "Hints are checked, but they have no effect.")
  )
}

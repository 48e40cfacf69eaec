package io.apportion.policies

import io.apportion.settings.{Nearest, QuerySettings, SettingEntry, SettingRegistry, Settings}
import org.apache.spark.sql.internal.SQLConf

/** Settings that a rule of the policy file may set. `settings.json` has the reasons for the others. */
private[apportion] object RuleSettings {

  /** Why a rule cannot set this setting; `None` if it can. */
  def refusal(setting: SettingEntry[_]): Option[String] =
    if (setting.isStatic) Some("it is set when Spark starts")
    else
      Option.when(setting eq QuerySettings.HintsStrict)("hints are checked before the rules of a query are known")

  /** Full name and value of a setting, or the problem. */
  def read(name: String, value: String): Either[String, (String, String)] = {
    val short = name.stripPrefix(SettingEntry.Prefix)
    SettingRegistry.all.find(_.name == short) match {
      case None =>
        val known = SettingRegistry.documented.filter(refusal(_).isEmpty).map(_.name)
        Left(s"unknown setting $name. Did you mean ${Nearest.to(short, known)}?")
      case Some(setting) if refusal(setting).isDefined =>
        Left(s"a rule cannot set $short: ${refusal(setting).get}")
      case Some(Settings.Enabled) if value != "false" =>
        Left(s"${Settings.Enabled.name} is $value. Allowed: false. A rule cannot switch Apportion on")
      case Some(setting) =>
        setting.parse(value).fold(problem => Left(s"$short is $problem"), _ => Right(setting.key -> value))
    }
  }

  /** The first contradiction between settings of a rule and the defaults of the others. */
  def contradiction(settings: Map[String, String]): Option[String] = {
    val conf = new SQLConf()
    settings.foreach { case (key, value) => conf.setConfString(key, value) }
    SettingRegistry.problems(conf).headOption
  }
}

package io.apportion.settings

import scala.util.Try

import io.apportion.decision.ranges.Bytes
import org.apache.spark.sql.internal.SQLConf

/**
 * A typed setting of Apportion, registered as a Spark SQL conf. `SET -v` shows it, and `SET` refuses wrong values.
 *
 * @param default  the default value in the unit of the conf: bytes or seconds; `None` if the setting has no default
 * @param isStatic whether Spark refuses to change the setting while the application runs
 */
final class SettingEntry[T] private[settings] (
    val name: String,
    val category: Category,
    val kind: String,
    val default: Option[T],
    val allowed: Allowed[_],
    val doc: String,
    read: SQLConf => T,
    val isStatic: Boolean = false
) {
  val key: String = SettingEntry.Prefix + name

  /** The default for the documentation: sizes and times have a unit. */
  val defaultText: String = (default: Option[Any]) match {
    case Some(bytes: Long) if kind == "size"       => Bytes.text(bytes)
    case Some(seconds: Long) if kind == "duration" => SettingEntry.timeText(seconds)
    case Some(value)                               => value.toString
    case None                                      => "not set"
  }

  def get(conf: SQLConf): T = read(conf)

  /** The value of a text, or the text with what is allowed. */
  def parse(text: String): Either[String, T] =
    Try {
      val conf = new SQLConf()
      conf.setConfString(key, text)
      get(conf)
    }.toEither.left.map(_ => s"$text. Allowed: ${allowed.text}")
}

object SettingEntry {
  val Prefix = "spark.apportion."

  /** Version of Apportion that has all of these settings. */
  val Since = "0.1.0"

  /** Minutes if they are a whole number, otherwise seconds. */
  private def timeText(seconds: Long): String =
    if (seconds > 0 && seconds % 60 == 0) s"${seconds / 60} min" else s"$seconds s"
}

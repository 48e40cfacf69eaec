package io.apportion.settings

import java.util.Locale

import scala.util.Try

import org.apache.commons.text.similarity.LevenshteinDistance
import org.apache.hadoop.fs.Path

/** The allowed values of a setting. Spark checks them on `SET`. They are exported for Python and the documentation. */
sealed trait Allowed[-T] {
  def accepts(value: T): Boolean

  /** Description for error messages and the documentation. */
  def text: String

  /** The bounds, choices or pattern, for the export to JSON. */
  def data: Map[String, Any]
}

object Allowed {
  case object Anything extends Allowed[Any] {
    def accepts(value: Any): Boolean = true
    def text: String = "true or false"
    def data: Map[String, Any] = Map.empty
  }

  final case class AtLeast(min: Long, unit: String = "", or: Option[(Long, String)] = None) extends Allowed[Long] {
    def accepts(value: Long): Boolean = value >= min || or.exists(_._1 == value)
    def text: String = s"$min$unit or more" + or.fold("") { case (value, meaning) => s", or $value ($meaning)" }
    def data: Map[String, Any] = Map("min" -> min) ++ or.map { case (value, _) => "or" -> value }
  }

  final case class Between(above: Double, below: Double) extends Allowed[Double] {
    def accepts(value: Double): Boolean = above < value && value < below
    def text: String = s"above $above and below $below"
    def data: Map[String, Any] = Map("above" -> above, "below" -> below)
  }

  /** @param text description of the value, such as "a path" */
  final case class Text(text: String) extends Allowed[String] {
    def accepts(value: String): Boolean = value.trim.nonEmpty
    def data: Map[String, Any] = Map.empty
  }

  /** A file or directory in Hadoop's notation: a path, or a URI with an absolute path. */
  final case class Location(text: String) extends Allowed[String] {
    private val pattern = "(?:[A-Za-z][A-Za-z0-9+.-]*:)?/(?!/+$).*|[^:/]+(?:/.*)?"
    def accepts(value: String): Boolean =
      value.trim.nonEmpty && value.matches(pattern) && Try(new Path(value)).isSuccess
    def data: Map[String, Any] = Map("pattern" -> pattern)
  }

  /** Any number of these names, separated by commas. Packages may add names until sessions read their conf. */
  final class SomeOf(names: => Seq[String]) extends Allowed[String] {
    def choices: Seq[String] = names
    def accepts(value: String): Boolean = split(value).forall(choices.contains)
    def text: String = s"any of ${choices.mkString(", ")}, separated by commas"
    def data: Map[String, Any] = Map("choices" -> choices)

    def split(value: String): Seq[String] = value.split(',').toSeq.map(_.trim).filter(_.nonEmpty)
  }

  final case class OneOf(choices: String*) extends Allowed[String] {
    def accepts(value: String): Boolean = choices.contains(value)
    def text: String = choices.mkString(", ")
    def data: Map[String, Any] = Map("choices" -> choices)
  }
}

/** Suggestions for misspelled names, in error messages. */
private[apportion] object Nearest {
  private val distance = LevenshteinDistance.getDefaultInstance

  def to(text: String, known: Seq[String]): String =
    known.minBy(name => distance(name.toLowerCase(Locale.ROOT), text.toLowerCase(Locale.ROOT)).intValue)
}

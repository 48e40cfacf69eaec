package io.apportion.settings

import java.util.Locale
import java.util.concurrent.TimeUnit

import scala.util.Try

import org.apache.commons.text.similarity.LevenshteinDistance
import org.apache.hadoop.fs.Path
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf

/** The values that a setting allows: checked by Spark when it is set, told to people, and exported for other front ends. */
sealed trait Allowed[-T] {
  def accepts(value: T): Boolean
  def text: String

  /** The same as JSON-like data. */
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

  /** @param text what it is, such as "a path" */
  final case class Text(text: String) extends Allowed[String] {
    def accepts(value: String): Boolean = value.trim.nonEmpty
    def data: Map[String, Any] = Map.empty
  }

  /** A directory as Hadoop writes it: a path, or a URI whose path is absolute. */
  case object Directory extends Allowed[String] {
    private val pattern = "(?:[A-Za-z][A-Za-z0-9+.-]*:)?/(?!/+$).*|[^:/]+(?:/.*)?"
    def accepts(value: String): Boolean =
      value.trim.nonEmpty && value.matches(pattern) && Try(new Path(value)).isSuccess
    def text: String = "a directory, such as /folder or hdfs://host/folder"
    def data: Map[String, Any] = Map("pattern" -> pattern)
  }

  /** Any number of these names, between commas. */
  final case class SomeOf(choices: String*) extends Allowed[String] {
    def accepts(value: String): Boolean = split(value).forall(choices.contains)
    def text: String = s"any of ${choices.mkString(", ")}, between commas"
    def data: Map[String, Any] = Map("choices" -> choices)

    def split(value: String): Seq[String] = value.split(',').toSeq.map(_.trim).filter(_.nonEmpty)
  }

  final case class OneOf(choices: String*) extends Allowed[String] {
    def accepts(value: String): Boolean = choices.contains(value)
    def text: String = choices.mkString(", ")
    def data: Map[String, Any] = Map("choices" -> choices)
  }
}

/** Texts that are nearest to others, for error messages. */
private[apportion] object Nearest {
  private val distance = LevenshteinDistance.getDefaultInstance

  def to(text: String, known: Seq[String]): String =
    known.minBy(each => distance(each.toLowerCase(Locale.ROOT), text.toLowerCase(Locale.ROOT)).intValue)
}

/**
 * One setting of Apportion, registered as a SQL conf of Spark: typed, shown by `SET -v`, refused by `SET` when its value is
 * not allowed.
 *
 * @param isStatic whether Spark refuses to set it while the application runs
 */
final class SettingEntry[T] private (
    val name: String,
    val kind: String,
    val default: Option[T],
    val allowed: Allowed[_],
    val doc: String,
    val since: String,
    read: SQLConf => T,
    val isStatic: Boolean = false
) {
  val key: String = SettingEntry.Prefix + name

  def get(conf: SQLConf): T = read(conf)
}

object SettingEntry {
  val Prefix = "spark.apportion."

  def boolean(name: String, default: Boolean, since: String, doc: String): SettingEntry[Boolean] = {
    val entry = builder(name, since, doc).booleanConf.createWithDefault(default)
    new SettingEntry(name, "boolean", Some(default), Allowed.Anything, doc, since, _.getConf(entry))
  }

  def int(name: String, default: Int, allowed: Allowed[Long], since: String, doc: String): SettingEntry[Int] = {
    val entry = builder(name, since, doc).intConf
      .checkValue(value => allowed.accepts(value.toLong), mustBe(allowed))
      .createWithDefault(default)
    new SettingEntry(name, "int", Some(default), allowed, doc, since, _.getConf(entry))
  }

  def long(name: String, default: Long, allowed: Allowed[Long], since: String, doc: String): SettingEntry[Long] = {
    val entry =
      builder(name, since, doc).longConf.checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
    new SettingEntry(name, "int", Some(default), allowed, doc, since, _.getConf(entry))
  }

  def double(
      name: String,
      default: Double,
      allowed: Allowed[Double],
      since: String,
      doc: String
  ): SettingEntry[Double] = {
    val entry =
      builder(name, since, doc).doubleConf.checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
    new SettingEntry(name, "double", Some(default), allowed, doc, since, _.getConf(entry))
  }

  /** A number of bytes; sizes such as 64MB are understood. */
  def size(name: String, default: Long, allowed: Allowed[Long], since: String, doc: String): SettingEntry[Long] = {
    val entry = sizeBuilder(name, allowed, since, doc).createWithDefault(default)
    new SettingEntry(name, "size", Some(default), allowed, doc, since, _.getConf(entry))
  }

  /** A number of bytes that is not set by default. */
  def optionalSize(name: String, allowed: Allowed[Long], since: String, doc: String): SettingEntry[Option[Long]] = {
    val entry = sizeBuilder(name, allowed, since, doc).createOptional
    new SettingEntry(name, "size", None, allowed, doc, since, _.getConf(entry))
  }

  /** A time in milliseconds; units such as 30s and 5min are understood, and a plain number is one of seconds. */
  def duration(name: String, default: Long, allowed: Allowed[Long], since: String, doc: String): SettingEntry[Long] = {
    val entry = builder(name, since, doc)
      .timeConf(TimeUnit.SECONDS)
      .checkValue(allowed.accepts, mustBe(allowed))
      .createWithDefault(default)
    new SettingEntry(
      name,
      "duration",
      Some(default),
      allowed,
      doc,
      since,
      conf => TimeUnit.SECONDS.toMillis(conf.getConf(entry))
    )
  }

  /** Text with a default. */
  def text(name: String, default: String, allowed: Allowed.Text, since: String, doc: String): SettingEntry[String] = {
    val entry =
      builder(name, since, doc).stringConf.checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
    new SettingEntry(name, "text", Some(default), allowed, doc, since, _.getConf(entry))
  }

  def choice(
      name: String,
      default: String,
      allowed: Allowed.OneOf,
      since: String,
      doc: String
  ): SettingEntry[String] = {
    val entry = builder(name, since, doc).stringConf
      .transform(_.toLowerCase(Locale.ROOT))
      .checkValue(allowed.accepts, mustBe(allowed))
      .createWithDefault(default)
    new SettingEntry(name, "choice", Some(default), allowed, doc, since, _.getConf(entry))
  }

  /** A directory that is not set by default, and that no session can set: the application opens it with its own rights. */
  def staticDirectory(name: String, since: String, doc: String): SettingEntry[Option[String]] = {
    val allowed = Allowed.Directory
    val entry = SQLConf
      .buildStaticConf(Prefix + name)
      .doc(doc)
      .version(since)
      .stringConf
      .checkValue(allowed.accepts, mustBe(allowed))
      .createOptional
    new SettingEntry(name, "text", None, allowed, doc, since, _.getConf(entry), isStatic = true)
  }

  /** A set of names, written between commas and empty by default. A value is split once, as rules read it all the time. */
  def names(name: String, allowed: Allowed.SomeOf, since: String, doc: String): SettingEntry[Set[String]] = {
    @volatile var last = ("", Set.empty[String])
    def parsed(value: String): Set[String] = {
      val known = last
      if (known._1 == value) known._2
      else {
        val names = allowed.split(value)
        names.filterNot(allowed.choices.contains).foreach { wrong =>
          throw new IllegalArgumentException(
            s"There is no $wrong for $Prefix$name. Did you mean ${Nearest.to(wrong, allowed.choices)}? ${mustBe(allowed)}"
          )
        }
        val found = names.toSet
        last = (value, found)
        found
      }
    }
    val entry = builder(name, since, doc).stringConf.transform { value => parsed(value); value }.createOptional
    new SettingEntry(name, "list", None, allowed, doc, since, _.getConf(entry).fold(Set.empty[String])(parsed))
  }

  private def builder(name: String, since: String, doc: String) =
    SQLConf.buildConf(Prefix + name).doc(doc).version(since)

  private def sizeBuilder(name: String, allowed: Allowed[Long], since: String, doc: String) =
    builder(name, since, doc).bytesConf(ByteUnit.BYTE).checkValue(allowed.accepts, mustBe(allowed))

  private def mustBe(allowed: Allowed[_]): String = s"Allowed: ${allowed.text}."
}

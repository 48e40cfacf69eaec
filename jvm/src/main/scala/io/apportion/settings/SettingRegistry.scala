package io.apportion.settings

import java.util.Locale
import java.util.concurrent.TimeUnit

import scala.collection.mutable

import io.apportion.decision.ValueSource
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf

/** All settings of Apportion. Spark's `SET -v`, the Python package and the documentation read them from here. */
object SettingRegistry {
  @volatile private var registries = Seq.empty[SettingRegistry]
  @volatile private var entries = Seq.empty[SettingEntry[_]]

  /** Adds settings before a session reads its conf: Spark then refuses wrong values. */
  def add(more: SettingRegistry*): Unit = synchronized {
    registries = (registries ++ more).distinct
    val ofCategory = registries.flatMap(_.declared).groupBy(_.category)
    entries = (Category.all :+ Category.Internal).flatMap(ofCategory.getOrElse(_, Nil))
    sourcesIfUnset = entries.map(_.name -> ValueSource.Default).toMap
  }

  /** All settings, by category, in the order of their declarations. */
  def all: Seq[SettingEntry[_]] = entries

  /** The settings that users have a reason to change. */
  def documented: Seq[SettingEntry[_]] = all.filter(_.category ne Category.Internal)

  /** Source of each setting that is not set, by name. */
  @volatile private[settings] var sourcesIfUnset: Map[String, ValueSource] = Map.empty

  /** Settings that contradict each other. */
  def problems(conf: SQLConf): Seq[String] = registries.flatMap(_.problems(conf))
}

/** Registers each setting that it declares with Spark. */
private[apportion] abstract class SettingRegistry {
  import SettingEntry.{Prefix, Since}

  private val declared = mutable.ArrayBuffer.empty[SettingEntry[_]]

  /** Settings of this registry that contradict each other. */
  private[settings] def problems(conf: SQLConf): Seq[String] = Nil

  private def declare[T](
      name: String,
      category: Category,
      kind: String,
      default: Option[T],
      allowed: Allowed[_],
      doc: String,
      isStatic: Boolean = false
  )(read: SQLConf => T): SettingEntry[T] = {
    val entry = new SettingEntry(name, category, kind, default, allowed, doc, read, isStatic)
    declared += entry
    entry
  }

  protected def boolean(name: String, category: Category, default: Boolean, doc: String): SettingEntry[Boolean] = {
    val entry = builder(name, category, doc).booleanConf.createWithDefault(default)
    declare(name, category, "boolean", Some(default), Allowed.Anything, doc)(_.getConf(entry))
  }

  protected def int(
      name: String,
      category: Category,
      default: Int,
      allowed: Allowed[Long],
      doc: String
  ): SettingEntry[Int] = {
    val entry = builder(name, category, doc).intConf
      .checkValue(value => allowed.accepts(value.toLong), mustBe(allowed))
      .createWithDefault(default)
    declare(name, category, "int", Some(default), allowed, doc)(_.getConf(entry))
  }

  protected def double(
      name: String,
      category: Category,
      default: Double,
      allowed: Allowed[Double],
      doc: String
  ): SettingEntry[Double] = {
    val entry =
      builder(name, category, doc).doubleConf.checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
    declare(name, category, "double", Some(default), allowed, doc)(_.getConf(entry))
  }

  /** A number of bytes. Values may have a unit, such as 64MB. */
  protected def size(
      name: String,
      category: Category,
      default: Long,
      allowed: Allowed[Long],
      doc: String
  ): SettingEntry[Long] = {
    val entry = sizeBuilder(name, category, allowed, doc).createWithDefault(default)
    declare(name, category, "size", Some(default), allowed, doc)(_.getConf(entry))
  }

  /** A number of bytes without a default. */
  protected def optionalSize(
      name: String,
      category: Category,
      allowed: Allowed[Long],
      doc: String
  ): SettingEntry[Option[Long]] = {
    val entry = sizeBuilder(name, category, allowed, doc).createOptional
    declare(name, category, "size", None, allowed, doc)(_.getConf(entry))
  }

  /** A time in seconds. Values may have a unit, such as 30s or 5min. `get` returns milliseconds. */
  protected def duration(
      name: String,
      category: Category,
      default: Long,
      allowed: Allowed[Long],
      doc: String
  ): SettingEntry[Long] = {
    val entry = builder(name, category, doc)
      .timeConf(TimeUnit.SECONDS)
      .checkValue(allowed.accepts, mustBe(allowed))
      .createWithDefault(default)
    declare(name, category, "duration", Some(default), allowed, doc)(conf =>
      TimeUnit.SECONDS.toMillis(conf.getConf(entry))
    )
  }

  /** Text with a default. */
  protected def text(
      name: String,
      category: Category,
      default: String,
      allowed: Allowed.Text,
      doc: String
  ): SettingEntry[String] = {
    val entry =
      builder(name, category, doc).stringConf.checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
    declare(name, category, "text", Some(default), allowed, doc)(_.getConf(entry))
  }

  protected def choice(
      name: String,
      category: Category,
      default: String,
      allowed: Allowed.OneOf,
      doc: String
  ): SettingEntry[String] = {
    val entry = builder(name, category, doc).stringConf
      .transform(_.toLowerCase(Locale.ROOT))
      .checkValue(allowed.accepts, mustBe(allowed))
      .createWithDefault(default)
    declare(name, category, "choice", Some(default), allowed, doc)(_.getConf(entry))
  }

  /** A location without a default. Sessions cannot set it, as the application opens it with its own access rights. */
  protected def staticLocation(
      name: String,
      category: Category,
      allowed: Allowed.Location,
      doc: String
  ): SettingEntry[Option[String]] = {
    val entry = SQLConf
      .buildStaticConf(Prefix + name)
      .doc(doc)
      .version(Since)
      .stringConf
      .checkValue(allowed.accepts, mustBe(allowed))
      .createOptional
    declare(name, category, "text", None, allowed, doc, isStatic = true)(_.getConf(entry))
  }

  /** A set of names, separated by commas, empty by default. Every rule reads it, so the last value is kept parsed. */
  protected def names(
      name: String,
      category: Category,
      allowed: Allowed.SomeOf,
      doc: String
  ): SettingEntry[Set[String]] = {
    @volatile var last = ("", Set.empty[String])
    def parsed(value: String): Set[String] = {
      val known = last
      if (known._1 == value) known._2
      else {
        val names = allowed.split(value)
        names.filterNot(allowed.choices.contains).foreach { wrong =>
          throw new IllegalArgumentException(
            s"Unknown name $wrong in $Prefix$name. Did you mean ${Nearest.to(wrong, allowed.choices)}? " +
              mustBe(allowed)
          )
        }
        val distinct = names.toSet
        last = (value, distinct)
        distinct
      }
    }
    val entry = builder(name, category, doc).stringConf.transform { value => parsed(value); value }.createOptional
    declare(name, category, "list", None, allowed, doc)(_.getConf(entry).fold(Set.empty[String])(parsed))
  }

  private def builder(name: String, category: Category, doc: String) = {
    val builder = SQLConf.buildConf(Prefix + name).doc(doc).version(Since)
    if (category eq Category.Internal) builder.internal() else builder
  }

  private def sizeBuilder(name: String, category: Category, allowed: Allowed[Long], doc: String) =
    builder(name, category, doc).bytesConf(ByteUnit.BYTE).checkValue(allowed.accepts, mustBe(allowed))

  private def mustBe(allowed: Allowed[_]): String = s"Allowed: ${allowed.text}."
}

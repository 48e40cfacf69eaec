package io.apportion.settings

import java.util.Locale
import java.util.concurrent.TimeUnit

import scala.collection.mutable

import io.apportion.decision.ValueSource
import org.apache.spark.network.util.ByteUnit
import org.apache.spark.sql.internal.SQLConf

/**
 * All settings of Apportion, and the rules that can be switched off. Spark's `SET -v`, the Python package and the
 * documentation read them from here.
 */
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

  /** All rules that `rules.disabled` can switch off. */
  def rules: Seq[RuleSwitch] = registries.flatMap(_.rules).sortBy(_.name)

  /** Source of each setting that is not set, by name. */
  @volatile private[settings] var sourcesIfUnset: Map[String, ValueSource] = Map.empty

  /** Settings that contradict each other. */
  def problems(conf: SQLConf): Seq[String] = registries.flatMap(_.problems(conf))
}

/**
 * A rule that can be switched off.
 *
 * @param name      public name, which the rule keeps if its class is renamed; see `Guarded.publicName`
 * @param withoutIt description of what happens while the rule is off, for the documentation
 */
final case class RuleSwitch(name: String, withoutIt: String)

/** Registers each setting that it declares with Spark. */
private[apportion] abstract class SettingRegistry {
  import SettingEntry.{Prefix, Since}

  private val declared = mutable.ArrayBuffer.empty[SettingEntry[_]]

  /** Rules of the package that can be switched off. */
  private[apportion] def rules: Seq[RuleSwitch] = Nil

  /** Settings of this registry that contradict each other. */
  private[settings] def problems(conf: SQLConf): Seq[String] = Nil

  /** Declares a setting. A method of the result gives it a type. */
  protected def setting(name: String, category: Category, doc: String): Declaration =
    new Declaration(name, category, doc)

  /** A setting that has no type yet. */
  protected final class Declaration(name: String, category: Category, doc: String) {

    def boolean(default: Boolean): SettingEntry[Boolean] = {
      val entry = builder.booleanConf.createWithDefault(default)
      declare("boolean", Some(default), Allowed.Anything)(_.getConf(entry))
    }

    def int(default: Int, allowed: Allowed[Long]): SettingEntry[Int] = {
      val entry =
        builder.intConf.checkValue(value => allowed.accepts(value.toLong), mustBe(allowed)).createWithDefault(default)
      declare("int", Some(default), allowed)(_.getConf(entry))
    }

    def double(default: Double, allowed: Allowed[Double]): SettingEntry[Double] = {
      val entry = builder.doubleConf.checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
      declare("double", Some(default), allowed)(_.getConf(entry))
    }

    /** A number of bytes. Values may have a unit, such as 64MB. */
    def size(default: Long, allowed: Allowed[Long]): SettingEntry[Long] = {
      val entry = bytes(allowed).createWithDefault(default)
      declare("size", Some(default), allowed)(_.getConf(entry))
    }

    /** A number of bytes without a default. */
    def optionalSize(allowed: Allowed[Long]): SettingEntry[Option[Long]] = {
      val entry = bytes(allowed).createOptional
      declare("size", None, allowed)(_.getConf(entry))
    }

    /** A time in seconds. Values may have a unit, such as 30s or 5min. `get` returns milliseconds. */
    def duration(default: Long, allowed: Allowed[Long]): SettingEntry[Long] = {
      val entry =
        builder.timeConf(TimeUnit.SECONDS).checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
      declare("duration", Some(default), allowed)(conf => TimeUnit.SECONDS.toMillis(conf.getConf(entry)))
    }

    /** Text with a default. */
    def text(default: String, allowed: Allowed.Text): SettingEntry[String] = {
      val entry = builder.stringConf.checkValue(allowed.accepts, mustBe(allowed)).createWithDefault(default)
      declare("text", Some(default), allowed)(_.getConf(entry))
    }

    def choice(default: String, allowed: Allowed.OneOf): SettingEntry[String] = {
      val entry = builder.stringConf
        .transform(_.toLowerCase(Locale.ROOT))
        .checkValue(allowed.accepts, mustBe(allowed))
        .createWithDefault(default)
      declare("choice", Some(default), allowed)(_.getConf(entry))
    }

    /** A location without a default. Sessions cannot set it, as the application opens it with its own access rights. */
    def staticLocation(allowed: Allowed.Location): SettingEntry[Option[String]] = {
      val entry = SQLConf
        .buildStaticConf(Prefix + name)
        .doc(doc)
        .version(Since)
        .stringConf
        .checkValue(allowed.accepts, mustBe(allowed))
        .createOptional
      declare("text", None, allowed, isStatic = true)(_.getConf(entry))
    }

    /** A set of names, separated by commas, empty by default. Every rule reads it, so the last value is kept parsed. */
    def names(allowed: Allowed.SomeOf): SettingEntry[Set[String]] = {
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
      val entry = builder.stringConf.transform { value => parsed(value); value }.createOptional
      declare("list", None, allowed)(_.getConf(entry).fold(Set.empty[String])(parsed))
    }

    private def builder = {
      val builder = SQLConf.buildConf(Prefix + name).doc(doc).version(Since)
      if (category eq Category.Internal) builder.internal() else builder
    }

    private def bytes(allowed: Allowed[Long]) =
      builder.bytesConf(ByteUnit.BYTE).checkValue(allowed.accepts, mustBe(allowed))

    private def mustBe(allowed: Allowed[_]): String = s"Allowed: ${allowed.text}."

    private def declare[T](kind: String, default: Option[T], allowed: Allowed[_], isStatic: Boolean = false)(
        read: SQLConf => T
    ): SettingEntry[T] = {
      val entry = new SettingEntry(name, category, kind, default, allowed, doc, read, isStatic)
      declared += entry
      entry
    }
  }
}

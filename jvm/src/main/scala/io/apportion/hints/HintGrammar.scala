package io.apportion.hints

import java.util.Locale

import scala.util.Try

import io.apportion.decision.{Policy, ResourceRequirement}
import io.apportion.settings.Settings
import org.apache.commons.text.similarity.LevenshteinDistance
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute
import org.apache.spark.sql.catalyst.expressions.{Expression, Literal, UnaryMinus}
import org.apache.spark.sql.catalyst.plans.logical.{JoinStrategyHint, UnresolvedHint}
import org.apache.spark.sql.catalyst.trees.Origin
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/**
 * Parses an Apportion hint into its values or its problem. The Python package's linter finds the same problems, in
 * `python/apportion/hints/grammar.py`. The golden file `wrong_hints.golden.txt` keeps both equal: `WrongHintsSuite`
 * writes it, and `python/tests/hints/test_lint.py` compares its messages with the linter's.
 */
private[hints] object HintGrammar {
  import HintKind._
  import HintNames.{isTableNamed, near, nearest, normal}

  type Read[+T] = Either[HintProblem, T]

  /** @param tables names of the block's tables */
  def read(hint: UnresolvedHint, tables: => Seq[Seq[String]]): Read[BlockHints] = {
    val in = new Arguments(hint)
    (normal(hint.name), argumentsOf(hint)) match {
      case (Parallelism.name, Seq(n))        => in.count(n).map(n => in.hinted(Parallelism, TaskCount.Exactly(n)))
      case (Parallelism.name, Seq(min, max)) =>
        for (min <- in.count(min); max <- in.count(max); between <- in.bounds(min, max))
          yield in.hinted(Parallelism, between)
      case (DataVolume.name, Seq(volume))      => in.volume(volume).map(in.hinted(DataVolume, _))
      case (BroadcastRatio.name, Seq(ratio))   => in.ratio(ratio).map(in.hinted(BroadcastRatio, _))
      case (Ranges.name, Seq(word))            => in.word(word, Settings.Layouts.choices).map(in.hinted(Ranges, _))
      case (Slots.name, Seq(min, target, max)) =>
        for {
          min <- in.count(min, least = 0)
          target <- in.count(target)
          max <- in.count(max)
          ascending <- in.ascending(min, target, max)
        } yield in.hinted(Slots, ascending)
      case (FinishWithin.name, Seq(time)) => in.time(time).map(in.hinted(FinishWithin, _))
      case (Scans.name, Seq(n))           => in.count(n).map(in.hinted(Scans, _))
      case (Scans.name, Seq(table, n))    =>
        for (table <- in.table(table, tables); n <- in.count(n))
          yield in.hinted(scanOf(table), n)
      case (name, _) => in.wrongArity(all.find(_.name == name).get)
    }
  }

  /** The problem of a hint with an unknown name, if the name is near a known one. Spark would drop such a hint. */
  def misspelt(hint: UnresolvedHint): Option[HintProblem] =
    nearest(hint.name).map { meant =>
      HintProblem("APH201", text(hint), "unknown hint", Some(s"did you mean $meant"), hint.origin)
    }

  private def text(hint: UnresolvedHint): String =
    if (hint.parameters.isEmpty) hint.name else s"${hint.name}(${argumentsOf(hint).map(text).mkString(", ")})"

  /** Before Spark 4, a hint of a DataFrame has plain values instead of expressions. */
  def argumentsOf(hint: UnresolvedHint): Seq[Expression] = (hint.parameters: Seq[Any]).map {
    case expression: Expression => expression
    case value                  => Literal(value)
  }

  /** The name of a table, if the argument is one. */
  def nameParts(argument: Expression): Option[Seq[String]] = argument match {
    case UnresolvedAttribute(nameParts) => Some(nameParts)
    case Literal(text, StringType)      =>
      // Spark refuses texts such as 'a..b', which are no table of a block then.
      Some(Try(UnresolvedAttribute.parseAttributeName(text.toString)).getOrElse(Seq(text.toString)))
    case _ => None
  }

  /** The expression, nearly as it was written. */
  private def text(expression: Expression): String = expression match {
    case Literal(value, StringType)     => s"'$value'"
    case Literal(n: Long, LongType)     => if (n.isValidInt) s"${n}L" else s"$n"
    case Literal(value, _)              => String.valueOf(value)
    case UnaryMinus(number, _)          => s"-${text(number)}"
    case UnresolvedAttribute(nameParts) => nameParts.mkString(".")
    case other                          => other.sql
  }

  /** Checks the arguments of one hint. */
  private final class Arguments(hint: UnresolvedHint) {
    private val name = normal(hint.name)

    def hinted[T](kind: HintKind[T], value: T): BlockHints = BlockHints.of(kind, Hinted(value, hint.origin.line))

    def wrongArity(kind: HintKind[_]): Read[Nothing] = {
      val arguments = hint.parameters.size match {
        case 0 => "no arguments"
        case 1 => "1 argument"
        case n => s"$n arguments"
      }
      problem("APH301", s"$name has $arguments, expected ${kind.usage}", Some(s"write ${kind.example}, for example"))
    }

    def count(argument: Expression, least: Int = 1): Read[Int] = {
      def outside = wrong("APH303", argument, s"takes a number from $least to ${Int.MaxValue}")
      integer(argument) match {
        case Some(n) if n >= least => Right(n)
        case Some(_)               => outside
        case None                  =>
          argument match {
            case Literal(n: Long, LongType) if n > Int.MaxValue => outside
            case _                                              => wrong("APH302", argument, "takes a whole number")
          }
      }
    }

    private def integer(argument: Expression): Option[Int] = argument match {
      case Literal(n: Int, IntegerType)                => Some(n)
      case UnaryMinus(Literal(n: Int, IntegerType), _) => Some(-n)
      case _                                           => None
    }

    def bounds(min: Int, max: Int): Read[TaskCount] =
      if (min > max) above(s"minimum ($min)", s"maximum ($max)", Seq(min, max))
      else if (Policy.boundsProblem(min, max).isDefined)
        problem("APH305", s"$name needs a power of two within its bounds, but there is none from $min to $max")
      else Right(TaskCount.Between(min, max))

    def ascending(min: Int, target: Int, max: Int): Read[ResourceRequirement] =
      if (min > target) above(s"minimum ($min)", s"target ($target)", Seq(min, target, max))
      else if (target > max) above(s"target ($target)", s"maximum ($max)", Seq(min, target, max))
      else Right(ResourceRequirement(min, target, max))

    private def above(one: String, other: String, numbers: Seq[Int]): Read[Nothing] = {
      val ordered = numbers.sorted.mkString("(", ", ", ")")
      problem("APH304", s"$name has a $one above its $other", Some(s"write $name$ordered"))
    }

    def time(argument: Expression): Read[Long] = {
      val millis = argument match {
        case Literal(text, StringType) => HintedTime.anyMillis(text.toString)
        case _                         => None
      }
      millis match {
        case Some(n) if HintedTime.isAllowed(n) => Right(n)
        case Some(_)                            => wrong("APH312", argument, "takes a time from 1 second to 365 days")
        case None                               =>
          wrong(
            "APH312",
            argument,
            "takes a quoted time with a unit (s, sec, m, min, h, hours, d, days), such as '10 min'"
          )
      }
    }

    def volume(argument: Expression): Read[Long] = {
      val bytes = argument match {
        case Literal(n: Long, LongType) => Some(BigInt(n))
        case Literal(size, StringType)  => bytesOf(size.toString)
        case other                      => integer(other).map(BigInt(_))
      }
      bytes match {
        case Some(n) if n >= 1 && n.isValidLong => Right(n.toLong)
        case Some(_)                            => wrong("APH306", argument, "takes a size from 1 byte to 8191 pb")
        case None                               =>
          wrong(
            "APH306",
            argument,
            "takes a quoted size with a unit (b, kb, mb, gb, tb, pb), such as '256MB', or a number of bytes"
          )
      }
    }

    private def bytesOf(size: String): Option[BigInt] = size.trim.toLowerCase(Locale.ROOT) match {
      case Size(number, null) => Some(BigInt(number))
      case Size(number, unit) => Some(BigInt(number) << (10 * " kmgtp".indexOf(unit)))
      case _                  => None
    }

    def ratio(argument: Expression): Read[Double] = {
      def outside(code: String) = wrong(code, argument, "takes a number above 0 and below 1")
      argument match {
        case Literal(number, _: NumericType) =>
          val value = number.toString.toDouble
          if (value > 0 && value < 1) Right(value) else outside("APH307")
        case UnaryMinus(Literal(_, _: NumericType), _) => outside("APH307")
        case _                                         => outside("APH302")
      }
    }

    def word(argument: Expression, words: Seq[String]): Read[String] = {
      val word = text(argument).stripPrefix("'").stripSuffix("'")
      words.find(_.equalsIgnoreCase(word)).toRight(()).left.flatMap { _ =>
        wrong("APH308", argument, s"takes ${words.mkString(" or ")}", near(word, words))
      }
    }

    def table(argument: Expression, tables: Seq[Seq[String]]): Read[Seq[String]] =
      nameParts(argument) match {
        case None        => wrong("APH309", argument, "takes a table of its block as first argument")
        case Some(parts) =>
          if (tables.exists(isTableNamed(parts, _))) Right(parts)
          else {
            val known = tables.map(_.last).distinct
            val knownText = if (known.isEmpty) "no tables" else known.mkString(", ")
            problem(
              "APH310",
              s"$name names ${parts.mkString(".")}, which is not a table or alias of its block " +
                s"(the block has $knownText)",
              Option.when(known.nonEmpty)(known).flatMap(near(parts.last, _)).map(n => s"did you mean $n"),
              argument.origin
            )
          }
      }

    private def wrong(
        code: String,
        argument: Expression,
        takes: String,
        meant: Option[String] = None
    ): Read[Nothing] =
      problem(code, s"$name $takes, not ${text(argument)}", meant.map(m => s"did you mean $m"), argument.origin)

    private def problem(
        code: String,
        message: String,
        suggestion: Option[String] = None,
        at: Origin = hint.origin
    ): Read[Nothing] =
      Left(HintProblem(code, text(hint), message, suggestion, if (at.line.isDefined) at else hint.origin))
  }

  private val Size = "(\\d{1,19})\\s*(?:b|([kmgtp])(?:i?b)?)".r
}

/** Times of the hint FINISH_WITHIN, such as `10 min`, in milliseconds. */
private[apportion] object HintedTime {
  private val Time = "(\\d{1,9})\\s*(s|sec|second|seconds|m|min|minute|minutes|h|hour|hours|d|day|days)".r
  private val Units = Map("s" -> 1000L, "m" -> 60000L, "h" -> 3600000L, "d" -> 86400000L)

  /** `None` if the text is not a time, or the time is not from 1 second to 365 days. */
  def millis(text: String): Option[Long] = anyMillis(text).filter(isAllowed)

  private[hints] def anyMillis(text: String): Option[Long] = text.trim.toLowerCase(Locale.ROOT) match {
    case Time(number, unit) => Some(number.toLong * Units(unit.take(1)))
    case _                  => None
  }

  private[hints] def isAllowed(millis: Long): Boolean = millis >= Units("s") && millis <= 365 * Units("d")
}

/**
 * Names of Apportion's and Spark's hints, with suggestions for misspelt names. `python/apportion/hints/grammar.py` has
 * the same names. A golden file keeps both equal: see [[HintGrammar]].
 */
private[hints] object HintNames {
  val ours: Seq[String] = HintKind.all.map(_.name)

  private val spark: Set[String] =
    JoinStrategyHint.strategies.flatMap(_.hintAliases) ++
      Set("COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE")

  private val databricks = Set("RANGE_JOIN", "SKEW")

  /** Names that users of other systems may expect, with the Apportion hint to use instead. */
  private val alsoCalled = Seq("MIN_PARALLELISM", "MAX_PARALLELISM").map(_ -> "PARALLELISM(min, max)").toMap

  private val distance = LevenshteinDistance.getDefaultInstance

  def normal(name: String): String = name.toUpperCase(Locale.ROOT)

  def isOurs(hint: UnresolvedHint): Boolean = ours.contains(normal(hint.name))

  /** The known name that an unknown name probably means: at most a quarter of the letters differ, rounded up. */
  def nearest(name: String): Option[String] =
    if (spark(normal(name)) || databricks(normal(name))) None
    else alsoCalled.get(normal(name)).orElse(near(name, ours ++ spark.toSeq.sorted))

  def near(name: String, known: Seq[String]): Option[String] = {
    def letters(text: String) = normal(text).filter(_ != '_')
    val (best, difference) = known.map(k => k -> distance(letters(k), letters(name)).intValue).minBy(_._2)
    Option.when(difference * 4 <= math.max(letters(best).length, letters(name).length) + 3)(best)
  }

  /** Whether a table name in a hint, with or without database and catalog, names this table. */
  def isTableNamed(hint: Seq[String], table: Seq[String]): Boolean =
    hint.size <= table.size && hint.zip(table.takeRight(hint.size)).forall(SQLConf.get.resolver.tupled)
}

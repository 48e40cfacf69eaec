package io.apportion.policies

import java.util.regex.Pattern

import scala.annotation.tailrec
import scala.collection.mutable

/**
 * A regular expression on the text of a query.
 *
 * Java's regular expressions can take exponential time. So each has a number of steps, and those of one query have a
 * number together: a query never waits long for its rules.
 */
private[policies] final class SqlPattern(text: String) {
  import SqlPattern._

  private val pattern = Pattern.compile(text)

  /** Texts that each match contains. To look for them is much faster than to match. */
  private[policies] val literals: Seq[String] = literalsIn(text)

  private val trigrams: Array[Int] = literals.flatMap(Trigrams.of).distinct.toArray

  def isIn(query: SqlText): Boolean = query.trigrams.hasAll(trigrams) && pattern.matcher(query.counted()).find()
}

private[policies] object SqlPattern {

  /** Characters that a pattern may look at: some milliseconds. */
  private[policies] val MaxSteps = 1000000

  /** Characters that the patterns of one query may look at. */
  private[policies] val MaxStepsOfQuery = 20000000

  private val Flags = "^\\(\\?[ism]+\\)".r
  private val InnerFlags = "\\(\\?[a-zA-Z-]+[:)]".r
  private val MinLiteral = 3

  /**
   * Texts outside of groups and classes, from a simple reading of the expression. There are none if the expression has
   * alternatives, quotations or flags that change within it.
   */
  private def literalsIn(regex: String): Seq[String] = {
    val body = Flags.replaceFirstIn(regex, "").toList
    val runs = mutable.ArrayBuffer(new StringBuilder)
    def endRun(): Unit = runs += new StringBuilder
    // The character before a quantifier may be missing.
    def endBefore(): Unit = {
      runs.last.setLength((runs.last.length - 1).max(0))
      endRun()
    }
    /* Whether the expression was read to its end. */
    @tailrec def read(rest: List[Char]): Boolean = rest match {
      case Nil                     => true
      case '|' :: _                => false
      case '\\' :: escaped :: more => if (escaped.isLetterOrDigit) endRun() else runs.last += escaped; read(more)
      case ('?' | '*') :: more     => endBefore(); read(more)
      case '{' :: more             => endBefore(); read(more.dropWhile(_ != '}').drop(1))
      case ('.' | '+' | '^' | '$') :: more => endRun(); read(more)
      case '(' :: more                     => endRun(); read(after(more, List(')')))
      case '[' :: more                     => endRun(); read(after(inClass(more), List(']')))
      case character :: more               => runs.last += character; read(more)
    }
    val isSimple = !regex.contains("\\Q") && InnerFlags.findFirstIn(body.mkString).isEmpty && read(body)
    if (isSimple) runs.map(_.result()).filter(run => run.length >= MinLiteral && run.forall(_ < 128)).toSeq else Nil
  }

  /**
   * The rest after groups and classes.
   *
   * @param ends the ends of these, from the innermost to the outermost
   */
  @tailrec private def after(rest: List[Char], ends: List[Char]): List[Char] = rest match {
    case more if ends.isEmpty            => more
    case Nil                             => Nil
    case '\\' :: more                    => after(more.drop(1), ends)
    case end :: more if end == ends.head => after(more, ends.tail)
    case '[' :: more                     => after(inClass(more), ']' :: ends)
    case '(' :: more if ends.head == ')' => after(more, ')' :: ends)
    case _ :: more                       => after(more, ends)
  }

  /** The rest of a class after its beginning. A bracket that comes first belongs to the class. */
  private def inClass(rest: List[Char]): List[Char] = {
    val negated = if (rest.headOption.contains('^')) rest.tail else rest
    if (negated.headOption.contains(']')) negated.tail else negated
  }
}

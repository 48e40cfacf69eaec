package io.apportion.policies

import java.util.Locale
import java.util.regex.Pattern

import scala.annotation.tailrec
import scala.collection.mutable

/**
 * A regular expression on the text of a query.
 *
 * Java's regular expressions can take exponential time. Those of one query share a number of steps, so that a query
 * never waits for its rules.
 */
private[policies] final class SqlPattern(text: String) {
  import SqlPattern._

  private val pattern = Pattern.compile(text)

  /** Text that each match contains. To search for it is much faster than to match. */
  private[policies] val literal: Option[String] = literalIn(text)

  private val ignoresCase = Flags.findPrefixOf(text).exists(_.contains('i'))

  def isIn(query: SqlText): Boolean =
    literal.forall(part =>
      if (ignoresCase) query.lower.contains(part.toLowerCase(Locale.ROOT)) else query.text.contains(part)
    ) &&
      pattern.matcher(query.counted).find()
}

private[policies] object SqlPattern {

  /** Characters that the patterns of one query may look at: some tens of milliseconds. */
  private[policies] val MaxSteps = 5000000

  private val Flags = "^\\(\\?[ismu]+\\)".r

  /**
   * The longest text that each match contains, from the part of the expression before its first group, class or count.
   * `None` if there is no such text, or the expression has alternatives or quotations.
   */
  private def literalIn(regex: String): Option[String] = {
    val body = Flags.replaceFirstIn(regex, "")
    val runs = mutable.ArrayBuffer(new StringBuilder)
    def endRun(): Unit = runs += new StringBuilder
    // The character before a quantifier may be missing.
    def endBefore(): Unit = {
      runs.last.setLength((runs.last.length - 1).max(0))
      endRun()
    }
    @tailrec def read(rest: List[Char]): Unit = rest match {
      case '\\' :: escaped :: more => if (escaped.isLetterOrDigit) endRun() else runs.last += escaped; read(more)
      case ('?' | '*') :: more     => endBefore(); read(more)
      case ('.' | '+' | '^' | '$') :: more     => endRun(); read(more)
      case '{' :: _                            => endBefore()
      case Nil | ('[' | '(' | ')' | '\\') :: _ =>
      case character :: more                   => runs.last += character; read(more)
    }
    read(body.toList)
    if (body.contains('|') || body.contains("\\Q")) None
    else Some(runs.map(_.result()).maxBy(_.length)).filter(run => run.length >= MinLiteral && run.forall(_ < 128))
  }

  private val MinLiteral = 3
}

/** The text of a query, and the steps that patterns may still spend on it. */
private[policies] final class SqlText(val text: String) {
  private var steps = 0

  lazy val lower: String = text.toLowerCase(Locale.ROOT)

  /** The text for a pattern. It throws [[TooManySteps]] when the patterns of the query have looked at too much. */
  val counted: CharSequence = new Counted(0, text.length)

  private final class Counted(from: Int, to: Int) extends CharSequence {
    override def length: Int = to - from
    override def charAt(index: Int): Char = {
      steps += 1
      if (steps > SqlPattern.MaxSteps) throw new TooManySteps
      text.charAt(from + index)
    }
    override def subSequence(start: Int, end: Int): CharSequence = new Counted(from + start, from + end)
    override def toString: String = text.substring(from, to)
  }
}

private[policies] final class TooManySteps extends RuntimeException("too many steps", null, false, false)

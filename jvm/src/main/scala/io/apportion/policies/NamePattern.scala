package io.apportion.policies

import java.util.Locale
import java.util.regex.Pattern

/**
 * A name, in which `*` stands for any text and `?` for any character.
 *
 * @param ignoresCase whether names in upper and lower case are equal, as the names of tables are
 */
private[policies] final class NamePattern(text: String, ignoresCase: Boolean) {

  /** The name, if the pattern matches only one. Rules are looked up by it. */
  val exact: Option[String] =
    Option.when(!text.exists(isWildcard))(if (ignoresCase) text.toLowerCase(Locale.ROOT) else text)

  /** Texts that each matching name contains. */
  val literals: Seq[String] = text.split("[*?]").toSeq

  private val prefix = text.takeWhile(!isWildcard(_))
  private val suffix = text.reverse.takeWhile(!isWildcard(_)).reverse

  private lazy val pattern: Pattern = {
    val quoted = text.map {
      case '*'  => ".*"
      case '?'  => "."
      case char => Pattern.quote(char.toString)
    }
    Pattern.compile(
      quoted.mkString,
      Pattern.DOTALL | (if (ignoresCase) Pattern.CASE_INSENSITIVE | Pattern.UNICODE_CASE else 0)
    )
  }

  /** Most names are ruled out by the beginning or the end of the pattern, which is fast to compare. */
  def matches(name: String): Boolean =
    if (exact.isDefined) text.length == name.length && name.regionMatches(ignoresCase, 0, text, 0, text.length)
    else
      name.length >= prefix.length && name.regionMatches(ignoresCase, 0, prefix, 0, prefix.length) &&
      name.regionMatches(ignoresCase, name.length - suffix.length, suffix, 0, suffix.length) &&
      pattern.matcher(name).matches

  private def isWildcard(character: Char): Boolean = character == '*' || character == '?'
}

/**
 * A pattern for the names of tables. A pattern with fewer parts than a name is compared with the last parts. A pattern
 * with a slash is compared with paths.
 */
private[policies] final class TablePattern(text: String) {
  private val isPath = text.contains('/')
  private val parts: IndexedSeq[NamePattern] =
    (if (isPath) Seq(text) else text.split("[.]", -1).toSeq).map(new NamePattern(_, ignoresCase = !isPath)).toIndexedSeq

  /** The table's own name, without catalog and database, if the pattern matches only one. */
  val exact: Option[String] = parts.last.exact

  private val trigrams: Array[Int] =
    parts.last.literals.filter(_.forall(_ < 128)).flatMap(Trigrams.of).distinct.toArray

  /** Whether one of these tables may match. It takes much less time than a comparison with each of them. */
  def mayMatch(tables: Trigrams): Boolean = tables.hasAll(trigrams)

  def matches(table: Seq[String]): Boolean = {
    val others = table.size - parts.size
    others >= 0 && parts.indices.forall(i => parts(i).matches(table(others + i)))
  }
}

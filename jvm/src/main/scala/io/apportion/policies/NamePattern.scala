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
  val exact: Option[String] = Option.when(!text.exists("*?".contains(_)))(normal(text))

  private lazy val pattern: Pattern = Pattern.compile(
    normal(text).map {
      case '*'  => ".*"
      case '?'  => "."
      case char => Pattern.quote(char.toString)
    }.mkString,
    Pattern.DOTALL
  )

  def matches(name: String): Boolean = exact.fold(pattern.matcher(normal(name)).matches)(_ == normal(name))

  def normal(name: String): String = if (ignoresCase) name.toLowerCase(Locale.ROOT) else name
}

/**
 * A pattern for the names of tables. A pattern with fewer parts than a name is compared with the last parts. A pattern
 * with a slash is compared with paths.
 */
private[policies] final class TablePattern(text: String) {
  private val isPath = text.contains('/')
  private val parts = (if (isPath) Seq(text) else text.split('.').toSeq).map(new NamePattern(_, ignoresCase = !isPath))

  /** The table's own name, without catalog and database, if the pattern matches only one. */
  val exact: Option[String] = parts.last.exact

  def matches(table: Seq[String]): Boolean =
    parts.size <= table.size && parts.zip(table.takeRight(parts.size)).forall { case (part, name) =>
      part.matches(name)
    }
}

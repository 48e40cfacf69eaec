package io.apportion.policies

/** The text of a query, and the steps that patterns may still spend on it. */
private[policies] final class SqlText(text: String) {
  private var stepsOfQuery = 0L

  lazy val trigrams: Trigrams = new Trigrams(text)

  /** The text for one pattern. It throws [[TooManySteps]] when the pattern has looked at too many characters. */
  def counted(): CharSequence = new CharSequence {
    private var steps = 0

    override def length: Int = text.length
    override def charAt(index: Int): Char = {
      steps += 1
      stepsOfQuery += 1
      if (steps > SqlPattern.MaxSteps || stepsOfQuery > SqlPattern.MaxStepsOfQuery) throw new TooManySteps
      text.charAt(index)
    }
    // A search only looks at characters.
    override def subSequence(start: Int, end: Int): CharSequence = text.subSequence(start, end)
    override def toString: String = text
  }
}

private[policies] final class TooManySteps extends RuntimeException("too many steps", null, false, false)

/**
 * The sequences of three characters in a text, by their hashes. A literal that a text contains has no other ones. One
 * look at the text serves all patterns. Upper and lower case are equal.
 */
private[policies] final class Trigrams(text: String) {
  private val bits = new Array[Long](Trigrams.Hashes / 64)
  Trigrams.of(text).foreach(hash => bits(hash >> 6) |= 1L << hash)

  /** Whether the text has all of these. It may return true for others with the same hashes. */
  def hasAll(hashes: Array[Int]): Boolean = {
    // The end of a literal tends to be special, such as the number of a job.
    var i = hashes.length - 1
    while (i >= 0 && (bits(hashes(i) >> 6) & (1L << hashes(i))) != 0) i -= 1
    i < 0
  }
}

private[policies] object Trigrams {
  private val Hashes = 1 << 16

  /** The sequences in names. Letters are equal if they are for [[NamePattern]] (`String.regionMatches`). */
  def ofNames(names: Seq[String]): Trigrams =
    new Trigrams(names.mkString("\n").map(char => Character.toLowerCase(Character.toUpperCase(char))))

  def of(text: String): Iterator[Int] = (0 to text.length - 3).iterator.map { i =>
    val hash = (lower(text.charAt(i)) * 31 + lower(text.charAt(i + 1))) * 31 + lower(text.charAt(i + 2))
    (hash ^ (hash >>> 16)) & (Hashes - 1)
  }

  private def lower(character: Char): Int =
    if (character >= 'A' && character <= 'Z') character + 32 else character.toInt
}

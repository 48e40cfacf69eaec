package io.apportion.hints

import org.apache.spark.sql.catalyst.trees.Origin

/**
 * What is wrong with a hint.
 *
 * @param code       the linter's code for it
 * @param hint       the hint as it was written
 * @param suggestion what was probably meant
 */
final case class HintProblem(code: String, hint: String, message: String, suggestion: Option[String], origin: Origin) {

  def text: String = {
    val position =
      for (line <- origin.line; column <- origin.startPosition) yield s" at line $line, column ${column + 1}"
    val view = origin.objectName.fold("")(name => s" of $name")
    s"Hint $hint${position.fold("")(_ + view)}: $message.${suggestion.fold("")(meant =>
        s" ${meant.capitalize}${if (meant.startsWith("did")) "?" else "."}"
      )}"
  }
}

package io.apportion.hints

import io.apportion.rules.OptInError
import org.apache.spark.sql.AnalysisException
import org.apache.spark.sql.catalyst.trees.Origin

/**
 * A problem with a hint.
 *
 * @param code       the linter's code for the problem
 * @param hint       the hint as it was written
 * @param suggestion a correction or an example
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

/** Analysis error for a wrong hint, with `spark.apportion.hints.strict`. */
final class InvalidHint(problem: HintProblem)
    extends AnalysisException(
      message = s"[${InvalidHint.ErrorClass}.${problem.code}] ${problem.text}",
      line = problem.origin.line,
      startPosition = problem.origin.startPosition,
      cause = None,
      errorClass = Some(s"${InvalidHint.ErrorClass}.${problem.code}"),
      messageParameters = Map("hint" -> problem.hint, "problem" -> problem.message) ++
        problem.suggestion.map("suggestion" -> _),
      // PySpark logs errors with a context. It only has texts for Spark's own error classes, and fails at others.
      context = Array.empty
    )
    with OptInError {

  /** The class "syntax error or access rule violation" of the SQL standard. */
  override def getSqlState: String = "42601"

  /** The message already contains the position of the hint. */
  override def getSimpleMessage: String = message
}

object InvalidHint {
  val ErrorClass = "APPORTION_INVALID_HINT"
}

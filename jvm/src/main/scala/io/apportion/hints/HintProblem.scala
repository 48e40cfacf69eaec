package io.apportion.hints

import io.apportion.rules.OptInError
import org.apache.spark.sql.AnalysisException
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

/** The analysis error that a wrong hint is under `spark.apportion.hints.strict`. */
final class InvalidHint(problem: HintProblem)
    extends AnalysisException(
      message = s"[${InvalidHint.ErrorClass}.${problem.code}] ${problem.text}",
      line = problem.origin.line,
      startPosition = problem.origin.startPosition,
      cause = None,
      errorClass = Some(s"${InvalidHint.ErrorClass}.${problem.code}"),
      messageParameters = Map("hint" -> problem.hint, "problem" -> problem.message) ++
        problem.suggestion.map("suggestion" -> _),
      // PySpark logs errors that have a context, with texts for Spark's own error classes alone, and fails at others.
      context = Array.empty
    )
    with OptInError {

  /** Syntax error or access rule violation. */
  override def getSqlState: String = "42601"

  /** The message says where the hint is already. */
  override def getSimpleMessage: String = message
}

object InvalidHint {
  val ErrorClass = "APPORTION_INVALID_HINT"
}

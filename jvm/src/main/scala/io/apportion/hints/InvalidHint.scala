package io.apportion.hints

import io.apportion.AskedFor
import org.apache.spark.sql.AnalysisException

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
    with AskedFor {

  /** Syntax error or access rule violation. */
  override def getSqlState: String = "42601"

  /** The message says where the hint is already. */
  override def getSimpleMessage: String = message
}

object InvalidHint {
  val ErrorClass = "APPORTION_INVALID_HINT"
}

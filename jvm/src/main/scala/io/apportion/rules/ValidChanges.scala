package io.apportion.rules

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ValidateRequirements

/** Applies changes to a plan only if its operators still get the distribution that they require from their children. */
private[apportion] object ValidChanges {

  /**
   * Applies all changes if the result is valid. Otherwise tries them one by one, so that a bad change does not undo the
   * others.
   */
  def applyAll[Change](plan: SparkPlan, changes: Seq[Change])(make: (SparkPlan, Seq[Change]) => SparkPlan): SparkPlan =
    if (changes.isEmpty) plan
    else {
      val all = make(plan, changes)
      if (ValidateRequirements.validate(all)) all
      else
        changes.foldLeft(plan) { (current, one) =>
          val next = make(current, Seq(one))
          if (ValidateRequirements.validate(next)) next else current
        }
    }
}

package io.apportion.rules

import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.exchange.ValidateRequirements

/** Changes to a plan that are kept only where the plan still meets what its operators require of their children's partitions. */
private[apportion] object ValidChanges {

  /** All changes at once if that is valid, else those that are valid one by one: a bad one must not undo the others. */
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

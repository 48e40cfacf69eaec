package io.apportion.history

import io.apportion.util.BoundedMap

/** The last run of each stage by its name: in this application, or in an earlier one if there is a history. */
private[apportion] final class StageRuns(history: Option[History], inApplication: BoundedMap[String, StageRun]) {

  /** Whether no run can be found. A name costs time, and most applications need none. */
  def isEmpty: Boolean = history.isEmpty && inApplication.isEmpty

  def last(name: String): Option[StageRun] = inApplication.get(name).orElse {
    val recorded = history.flatMap(_.last(name)).flatMap(_.stage)
    recorded.foreach(inApplication.put(name, _))
    recorded
  }

  def add(name: String, run: StageRun): Unit = {
    inApplication.put(name, run)
    history.foreach(_.add(name, Run("", run.stored, 0, System.currentTimeMillis(), Some(run))))
  }
}

private[apportion] object StageRuns {
  private val MaxKnown = 10000

  def inApplication: BoundedMap[String, StageRun] = new BoundedMap(MaxKnown)
}

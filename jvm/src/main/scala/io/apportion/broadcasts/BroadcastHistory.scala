package io.apportion.broadcasts

import io.apportion.history.{History, PlanFingerprint, Run}
import io.apportion.sizing.OutputEstimate
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.BroadcastQueryStageExec

/** Connects the broadcasts of a plan with the history of their sizes. */
private[apportion] object BroadcastHistory {

  /** Bytes of the hash table of these rows, by earlier runs and the bytes that the plan reads now. */
  def predict(history: History, build: SparkPlan): Option[Long] = {
    val fingerprint = PlanFingerprint.of(build)
    history.predict(fingerprint.copy(plan = nameOf(fingerprint)), OutputEstimate.leafBytes(build)).map(_.stored)
  }

  /** Adds the size of a finished broadcast to the history. */
  def remember(history: History, stage: BroadcastQueryStageExec, bytes: Long): Unit =
    if (history.isNew(stage.broadcast.id)) {
      val build = stage.broadcast.child
      val fingerprint = PlanFingerprint.of(build)
      val run = Run(fingerprint.literals, bytes, bytes, OutputEstimate.leafBytes(build), 1, System.currentTimeMillis())
      history.add(nameOf(fingerprint), run)
    }

  /** A shuffle of the same rows has another size, so it has another name. */
  private def nameOf(fingerprint: PlanFingerprint): String =
    PlanFingerprint.combined(Seq("broadcast", fingerprint.plan))
}

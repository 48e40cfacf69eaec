package io.apportion.groups

import io.apportion.decision.{SourceKind, ValueSource}
import org.apache.spark.sql.SparkSession

/** Limits the target size of tasks to `minTaskVolume` under a join that multiplies rows. */
private[apportion] object MultipliedRows extends Advisor {
  private val UnderJoin = ValueSource(SourceKind.MultipliedRows, "minTaskVolume, under a join that multiplies rows")

  override def advise(group: ExchangeGroup, known: GroupPolicy, session: SparkSession): GroupPolicy = {
    val policy = known.policy
    if (group.multipliesRows && policy.dataVolumePerTask > policy.minTaskVolume)
      known.copy(policy = policy.withVolume(policy.minTaskVolume, UnderJoin))
    else known
  }
}

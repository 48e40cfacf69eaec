package io.apportion.reads

import io.apportion.SparkSuite
import org.apache.gluten.GlutenPlugin

/** An application in which another engine runs the operators. */
class OtherEngineSuite extends SparkSuite {
  override protected def submitTimeConf: Map[String, String] = Map("spark.plugins" -> classOf[GlutenPlugin].getName)

  private val sorted = "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM numbers"

  test("the memory of Spark's operators sets no limit if another engine runs them") {
    assert(decisionOf(sorted).taskMemory.isEmpty)
  }

  test("memory.enabled=true limits by the memory of Spark's operators with any engine") {
    assert(decisionOf(sorted, "memory.enabled" -> "true").taskMemory.isDefined)
  }
}

package io.apportion.report

import io.apportion.SparkSuite

class RowJsonSuite extends SparkSuite {

  test("records have the same JSON as from Spark's own writer") {
    val decided = decisionsOf("SELECT k, count(*) FROM numbers GROUP BY k ORDER BY k", "ranges" -> "balanced")
    val alone = DecisionRecord.unchanged("\"quoted\" <why>\n", 4, Array(1L << 40, 0))
    val made = Seq(alone, alone.copy(limitedByPartitions = Some(2.5))) ++ decided
    assert(made.size > 3)
    made.map(DecisionTable.row).foreach(row => assert(RowJson.of(row).toString == row.json))
  }
}

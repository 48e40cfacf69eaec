package io.apportion.keys

import io.apportion.SparkSuite
import io.apportion.Vectors
import io.apportion.Vectors._
import com.fasterxml.jackson.databind.JsonNode
import org.apache.spark.sql.{AnalysisException, Row}
import org.apache.spark.unsafe.hash.Murmur3_x86_32
import org.apache.spark.unsafe.types.UTF8String

/** Flink's functions in SQL, on the cases that Flink's own code computed. */
class FlinkKeysSuite extends SparkSuite {

  for ((vector, line) <- Vectors.read("keygroups.jsonl").zipWithIndex)
    test(s"keygroups.jsonl ${line + 1}: $vector") {
      if (vector.has("error")) assertThrows[AnalysisException](valueOf(call(vector)))
      else assert(valueOf(call(vector)) == expected(vector))
    }

  private def call(vector: JsonNode): String = {
    def argument(field: String) = vector.get(field).asText
    vector.get("op").asText match {
      case "defaultMaxParallelism" => s"flink_max_parallelism(${argument("parallelism")})"
      case "operatorIndex"         =>
        s"flink_operator_index(${argument("keyGroup")}, ${argument("parallelism")}, ${argument("maxParallelism")})"
      case "keyGroupRange" =>
        s"flink_key_group_range(${argument("index")}, ${argument("parallelism")}, ${argument("maxParallelism")})"
      case "key" =>
        val keyGroup = s"flink_key_group(${literal(vector)}, ${argument("maxParallelism")})"
        s"struct($keyGroup, flink_operator_index($keyGroup, ${argument("parallelism")}, ${argument("maxParallelism")}))"
    }
  }

  private def literal(vector: JsonNode): String = vector.get("keyType").asText match {
    case "int"    => s"CAST('${vector.get("key").asText}' AS INT)"
    case "long"   => s"CAST('${vector.get("key").asText}' AS BIGINT)"
    case "string" => s"'${vector.get("key").asText}'"
  }

  private def expected(vector: JsonNode): Any = vector.get("op").asText match {
    case "defaultMaxParallelism" => vector.int("maxParallelism")
    case "operatorIndex"         => vector.int("index")
    case "keyGroupRange"         => Row(vector.int("start"), vector.int("end"))
    case "key"                   => Row(vector.int("keyGroup"), vector.int("index"))
  }

  private def valueOf(expression: String): Any = spark.sql(s"SELECT $expression").head().get(0)

  test("generated code computes the key groups of all vectors") {
    for ((keyType, sqlType) <- Seq("int" -> "INT", "long" -> "BIGINT", "string" -> "STRING")) {
      val vectors = Vectors.read("keygroups.jsonl").filter(v => v.has("keyType") && v.get("keyType").asText == keyType)
      for ((maxParallelism, own) <- vectors.groupBy(_.int("maxParallelism"))) {
        import spark.implicits._
        val keys = own.map(v => v.get("key").asText -> v.int("keyGroup")).toDF("text", "expected")
        val wrong = keys.where(s"flink_key_group(CAST(text AS $sqlType), $maxParallelism) <> expected")
        assert(wrong.count() == 0)
      }
    }
  }

  test("rebalance keys spread 10 keys evenly over 5 operators") {
    def indexes(key: String) = spark
      .range(10)
      .selectExpr(s"flink_operator_index(flink_key_group(CAST($key AS INT), 128), 5)")
      .collect()
      .map(_.getInt(0))
      .toSeq
    assert(indexes("id") == Seq(3, 3, 4, 4, 0, 4, 0, 4, 0, 1))
    assert(valueOf("flink_rebalance_keys(5)") == Seq(4, 9, 10, 0, 2))
    assert(indexes("flink_rebalance_keys(5)[id % 5]") == Seq(0, 1, 2, 3, 4, 0, 1, 2, 3, 4))
  }

  test("every operator has a rebalance key, up to Flink's maximum number of operators") {
    for (p <- Seq(1, 2, 3, 7, 100, 1000, 32767, 32768)) {
      val m = FlinkKeys.maxParallelism(p)
      val indexes = FlinkKeys
        .rebalanceKeys(p, m)
        .map(key => FlinkKeys.operatorIndex(FlinkKeys.keyGroup(key, m).toLong, p, m))
      assert(indexes.toSeq == (0 until p))
    }
  }

  test("hash codes of strings equal Java's for any UTF-16 text") {
    for (text <- Seq("", "a", "Berlin", "Z\u00fcrich", "\u6771\u4eac", "\ud83d\ude00!", "\u0000", "x" * 1000))
      assert(FlinkKeys.hashOfString(UTF8String.fromString(text)) == text.hashCode)
  }

  test("a murmur hash of -2^31 counts as 0") {
    val key = -2089875627
    assert(Murmur3_x86_32.hashInt(key, 0) == Int.MinValue)
    assert(FlinkKeys.keyGroup(key, 128) == 0)
  }
}

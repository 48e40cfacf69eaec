package io.apportion.report

import java.sql.Timestamp
import java.time.format.DateTimeFormatter

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** A row as JSON, as Spark's own `Row.json` writes it, for the types that records have; that one takes several times as long. */
private[apportion] object RowJson {
  private val nodes = JsonNodeFactory.instance
  private val timestamps = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss")

  def of(row: Row): ObjectNode = of(row, row.schema)

  private def of(row: Row, schema: StructType): ObjectNode = {
    val json = nodes.objectNode
    schema.fields.indices.foreach(i => json.set[JsonNode](schema(i).name, node(row.get(i), schema(i).dataType)))
    json
  }

  private def node(value: Any, dataType: DataType): JsonNode = (value, dataType) match {
    case (null, _)                            => nodes.nullNode
    case (text: String, _)                    => nodes.textNode(text)
    case (number: Int, _)                     => nodes.numberNode(number)
    case (number: Long, _)                    => nodes.numberNode(number)
    case (number: Double, _)                  => nodes.numberNode(number)
    case (at: Timestamp, _)                   => nodes.textNode(timestamps.withZone(zone).format(at.toInstant))
    case (row: Row, struct: StructType)       => of(row, struct)
    case (values: Seq[_], ArrayType(each, _)) =>
      values.foldLeft(nodes.arrayNode)((array, one) => array.add(node(one, each)))
    case (entries: Map[_, _], MapType(_, each, _)) =>
      val json = nodes.objectNode
      entries.toSeq.map { case (key, one) => (key.toString, one) }.sortBy(_._1).foreach { case (key, one) =>
        json.set[JsonNode](key, node(one, each))
      }
      json
    case _ => throw new IllegalArgumentException(s"$value of type ${dataType.sql}: records have no such columns")
  }

  private def zone = DateTimeUtils.getZoneId(SQLConf.get.sessionLocalTimeZone)
}

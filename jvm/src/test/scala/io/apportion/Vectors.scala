package io.apportion

import scala.io.Source
import scala.jdk.CollectionConverters._
import scala.util.Using

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/** Cases computed by Flink's own code, one JSON object a line. */
object Vectors {
  private val json = new ObjectMapper

  def read(name: String): Seq[JsonNode] =
    Using.resource(Source.fromInputStream(getClass.getResourceAsStream(s"/vectors/flink/$name"), "UTF-8")) {
      _.getLines().map(json.readTree).toList
    }

  implicit class Fields(node: JsonNode) {
    def long(field: String): Long = node.get(field).asLong
    def int(field: String): Int = node.get(field).intValue
    def items(field: String): Seq[JsonNode] = node.get(field).elements.asScala.toSeq
  }
}

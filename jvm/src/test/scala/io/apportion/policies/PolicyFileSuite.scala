package io.apportion.policies

import java.io.File

import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.apportion.ApportionExtension
import org.scalatest.funsuite.AnyFunSuite

class PolicyFileSuite extends AnyFunSuite {
  ApportionExtension.registerSettings()

  test("YAML and JSON make the same rules") {
    val yaml = """rules:
                 |  # Why the rule exists
                 |  - name: nightly
                 |    match:
                 |      user: [ann, bob]
                 |      table: sales.*
                 |    settings:
                 |      dataVolumePerTask: 256MB
                 |      spark.apportion.maxParallelism: 64
                 |    hints: PARALLELISM(4, 64), SOURCE_PARALLELISM(orders, 16)
                 |    blocks:
                 |      by_day: RANGES(balanced)
                 |    force: true
                 |""".stripMargin
    val json =
      """{"rules": [{"name": "nightly", "match": {"user": ["ann", "bob"], "table": "sales.*"}, "settings":
        |  {"dataVolumePerTask": "256MB", "spark.apportion.maxParallelism": 64},
        |  "hints": "PARALLELISM(4, 64), SOURCE_PARALLELISM(orders, 16)", "blocks": {"by_day": "RANGES(balanced)"},
        |  "force": true}]}""".stripMargin
    def read(text: String, isJson: Boolean) = {
      val Right(PolicyFile(Seq(rule), Nil)) = PolicyFile.parse(text, isJson): @unchecked
      (rule.source.text, rule.settings, rule.hints, rule.blocks, rule.isForced, rule.conditions.users.map(_.exact))
    }
    val found = read(yaml, isJson = false)
    assert(found == read(json, isJson = true))
    assert(found._1 == "policy file, rule 1 (nightly)")
    val settings = Map("spark.apportion.dataVolumePerTask" -> "256MB", "spark.apportion.maxParallelism" -> "64")
    assert(found._2 == settings)
  }

  private def elements(node: JsonNode): Seq[JsonNode] = node.elements.asScala.toSeq
  private def texts(node: JsonNode): Seq[String] = elements(node).map(_.asText)

  /** Files and expressions with the fields of their problems. Python's tests read the same file. */
  private val golden = new ObjectMapper().readTree(new File("jvm/src/test/resources/policies.golden.json"))

  for ((file, i) <- elements(golden.get("files")).zipWithIndex) {
    val text = file.get("file").asText
    test(s"file $i has its rules and problems: ${text.take(100).replace("\n", " ")}") {
      PolicyFile.parse(text, isJson = false) match {
        case Left(problem) =>
          assert(file.has("unreadable"), problem)
          assert(texts(file.get("unreadable")).forall(name => problem.contains(name)), problem)
        case Right(read) =>
          assert(!file.has("unreadable"))
          assert(read.rules.map(_.number) == elements(file.get("accepted")).map(_.asInt))
          // The log has only the first problem of a rule.
          val firsts = elements(file.get("problems")).groupBy(_.get("rule").asInt).toSeq.sortBy(_._1).map(_._2.head)
          assert(read.problems.size == firsts.size)
          for ((problem, expected) <- read.problems.zip(firsts)) {
            assert(problem.startsWith(s"rule ${expected.get("rule").asInt}"))
            assert(texts(expected.get("names")).forall(name => problem.contains(name)), problem)
          }
      }
    }
  }

  for (expression <- elements(golden.get("expressions"))) {
    val sql = expression.get("sql").asText
    test(s"the expression $sql is accepted or refused") {
      assert(Try(new SqlPattern(sql)).isSuccess == expression.get("accepted").asBoolean)
    }
  }

  test("a rule whose expression is nested too deeply is left out") {
    val sql = "(" * 200000 + ")" * 200000
    val text = s"rules: [{match: {sql: '$sql'}, hints: RANGES(even)}]"
    val Right(file) = PolicyFile.parse(text, isJson = false): @unchecked
    // Only some versions of Java turn the overflow of their stack into an exception.
    val refused = s"rule 1: sql is '${"(" * 200}', which is not a regular expression: Stack overflow"
    val Seq(problem) = file.problems: @unchecked
    assert(file.rules.isEmpty && problem.length < 500)
    assert(problem == "rule 1: sql is nested too deeply" || problem.startsWith(refused))
  }
}

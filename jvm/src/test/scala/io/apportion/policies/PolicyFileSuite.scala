package io.apportion.policies

import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

class PolicyFileSuite extends AnyFunSuite {

  private def rule(text: String): Either[String, PolicyFile] =
    PolicyFile.parse(s"rules: [{match: {user: ann}, $text}]", isJson = false)

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

  private val wrongRules = Table[String, String](
    ("rule", "problem"),
    ("settings: {paralelism: 8}", "unknown setting paralelism. Did you mean parallelism?"),
    ("settings: {parallelism: many}", "parallelism is many. Allowed: 1 or more, or -1 (decide)"),
    ("settings: {parallelism: [8]}", "parallelism is [8]. Allowed: one value"),
    ("settings: {history.path: /secret}", "a rule cannot set history.path: it is set when Spark starts"),
    ("settings: {policies: /other.yaml}", "a rule cannot set policies: it is set when Spark starts"),
    ("settings: {hints.strict: true}", "a rule cannot set hints.strict: hints are checked before"),
    ("settings: {enabled: true}", "enabled is true. Allowed: false"),
    (
      "settings: {minParallelism: 64, maxParallelism: 8}",
      "minParallelism is 64 and spark.apportion.maxParallelism is 8"
    ),
    ("settings: {}", "settings must have names and values"),
    ("hints: PARALELISM(8)", "hints: unknown hint PARALELISM. Allowed: PARALLELISM, DATA_VOLUME"),
    ("hints: PARALLELISM(0)", "hints: hint PARALLELISM(0): PARALLELISM takes a number from 1 to 2147483647, not 0"),
    ("hints: 'PARALLELISM(8) */ 1 --'", "cannot read the hints"),
    ("hints: 8", "hints is 8. Allowed: text, such as PARALLELISM(8)"),
    ("blocks: {c: RANGES(odd)}", "block c: hint RANGES(odd): RANGES takes even or balanced, not odd"),
    ("blocks: {a b: RANGES(even)}", "block a b is not a name"),
    ("settings: {mode: active}, force: 1", "force is 1. Allowed: true, false"),
    ("setings: {mode: active}", "unknown key setings. Did you mean settings?"),
    ("force: true", "it sets nothing. Add settings, hints or blocks")
  )

  forAll(wrongRules) { (text, problem) =>
    test(s"a rule with $text is left out") {
      val Right(file) = rule(text): @unchecked
      assert(file.rules.isEmpty && file.problems.size == 1)
      assert(file.problems.head.startsWith("rule 1: ") && file.problems.head.contains(problem), file.problems)
    }
  }

  private val wrongConditions = Table[String, String](
    ("match", "problem"),
    ("{}", "match has no conditions. Allowed: fingerprint, user, application"),
    ("{usr: ann}", "match has the unknown key usr. Did you mean user?"),
    ("{user: 7}", "user is 7. Allowed: text, or a list of texts"),
    ("{user: []}", "user is []. Allowed: text, or a list of texts"),
    ("{sql: '('}", "sql is '(', which is not a regular expression"),
    ("{sql: [a, b]}", "sql takes one regular expression")
  )

  forAll(wrongConditions) { (conditions, problem) =>
    test(s"a rule that matches $conditions is left out") {
      val text = s"rules: [{match: $conditions, settings: {mode: active}}, {match: {user: x}, hints: RANGES(even)}]"
      val Right(file) = PolicyFile.parse(text, isJson = false): @unchecked
      assert(file.rules.map(_.number) == Seq(2))
      assert(file.problems.head.startsWith("rule 1: ") && file.problems.head.contains(problem), file.problems)
    }
  }

  private val wrongFiles = Table[String, String](
    ("text", "problem"),
    ("", "the file must have keys and values. Allowed keys: rules"),
    ("rules: 5", "the file needs a list of rules"),
    ("rule: []", "unknown key rule. Did you mean rules?"),
    ("rules: [", "line: 1"),
    ("rules: []\nrules: []", "Duplicate field 'rules'")
  )

  forAll(wrongFiles) { (text, problem) =>
    test(s"a file with ${text.replace("\n", " and ")} is refused") {
      val Left(found) = PolicyFile.parse(text, isJson = false): @unchecked
      assert(found.contains(problem))
    }
  }
}

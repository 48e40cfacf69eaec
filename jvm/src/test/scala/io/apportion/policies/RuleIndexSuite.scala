package io.apportion.policies

import scala.util.Random

import io.apportion.ApportionExtension
import io.apportion.rules.Logged
import org.apache.spark.apportion.SessionUser
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

class RuleIndexSuite extends AnyFunSuite {
  ApportionExtension.registerSettings()

  private case class Query(
      user: String = "ann",
      application: String = "etl-7",
      jobTags: Seq[String] = Seq("nightly"),
      reads: Seq[Seq[String]] = Seq(Seq("spark_catalog", "sales", "Orders"), Seq("hdfs://host/in/a.parquet")),
      writes: Seq[Seq[String]] = Seq(Seq("lake", "marts", "daily")),
      catalogs: Seq[String] = Seq("spark_catalog", "lake"),
      text: String = "SELECT day, count(*)\nFROM Orders GROUP BY day",
      fingerprint: String = "f00d"
  ) extends QueryFacts {
    override def sql: Option[SqlText] = Some(new SqlText(text))
  }

  private def index(conditions: String*): RuleIndex = {
    val rules = conditions.map(condition => s"{match: {$condition}, settings: {mode: active}}")
    val Right(file) = PolicyFile.parse(rules.mkString("rules: [", ", ", "]"), isJson = false): @unchecked
    assert(file.problems == Nil)
    new RuleIndex(file.rules)
  }

  private def matching(query: QueryFacts, conditions: String*): Seq[Int] =
    index(conditions: _*).matching(query).map(_.number)

  private val conditions = Table(
    ("condition", "matches"),
    ("user: ann", true),
    ("user: Ann", false),
    ("user: [bob, ann]", true),
    ("user: 'a?n'", true),
    ("application: etl-*", true),
    ("application: etl", false),
    ("jobTag: nightly", true),
    ("jobTag: daily", false),
    ("table: orders", true),
    ("table: sales.orders", true),
    ("table: SPARK_CATALOG.sales.orders", true),
    ("table: hr.orders", false),
    ("table: orders.", false),
    ("table: '.'", false),
    ("table: sales.*", true),
    ("table: 'ord*'", true),
    ("table: 'hdfs://host/in/*'", true),
    ("table: hdfs://host/in/a.parquet", true),
    ("table: daily", false),
    ("writes: marts.daily", true),
    ("writes: orders", false),
    ("catalog: Lake", true),
    ("catalog: marts", false),
    ("fingerprint: f00d", true),
    ("fingerprint: beef", false),
    ("sql: GROUP BY day", true),
    ("sql: '(?i)from orders'", true),
    ("sql: from orders", false),
    ("sql: '(?s)SELECT.*BY'", true),
    ("sql: ^FROM", false),
    ("sql: 'count\\(\\*\\)'", true),
    ("user: ann, table: orders, sql: day$", true),
    ("user: ann, table: hr.orders", false)
  )

  forAll(conditions) { (condition, matches) =>
    test(s"the condition $condition ${if (matches) "matches" else "does not match"}") {
      assert(matching(Query(), condition) == (if (matches) Seq(1) else Nil))
    }
  }

  test("rules that match are in the order of the file, however they were found") {
    val found = matching(Query(), "sql: day", "table: orders", "user: '*'", "table: other", "user: ann, writes: daily")
    assert(found == Seq(1, 2, 3, 5))
  }

  test("an index finds the same rules as a test of each rule") {
    val random = new Random(1)
    val texts = conditions.map(_._1).toSeq
    val rules = index(Seq.fill(300)(texts(random.nextInt(texts.size))): _*)
    for (user <- Seq("ann", "bob"); table <- Seq("orders", "other"); tag <- Seq("nightly", "daily")) {
      val query = Query(user = user, reads = Seq(Seq("spark_catalog", "sales", table)), jobTags = Seq(tag))
      assert(rules.matching(query) == rules.rules.filter(_.conditions.hold(query)))
    }
  }

  test("a pattern of table names is not ruled out for a table that it matches") {
    val random = new Random(1)
    // Letters whose lower or upper case is another letter, even of ASCII
    def text(letters: String) = Seq.fill(1 + random.nextInt(6))(letters(random.nextInt(letters.length))).mkString
    val matches = Seq.fill(20000)(new TablePattern(text("kKsS*?")) -> Seq(text("kKsS\u212a\u017f"))).filter {
      case (pattern, table) => pattern.matches(table)
    }
    assert(matches.size > 1000)
    for ((pattern, table) <- matches) assert(pattern.mayMatch(Trigrams.ofNames(table :+ "other")))
  }

  private val uuid = "0b4b5c8e-3c1d-4c39-9b1e-0123456789ab"

  private val tagsOfSessions = Table(
    ("tag", "names", "user"),
    ("nightly", Seq("nightly"), None),
    (s"spark-session-$uuid-nightly", Seq("nightly"), None),
    (s"SparkConnect_SessionTag_User_ann_Session_${uuid}_Tag_a_Tag_b", Seq("a_Tag_b"), None),
    (s"SparkConnect_OperationTag_User_ann_b_Session_${uuid}_Operation_$uuid", Nil, Some("ann_b"))
  )

  forAll(tagsOfSessions) { (tag, names, user) =>
    test(s"the job tag ${tag.replace(uuid, "UUID")} has the name and the user that the session gave") {
      assert(PlanFacts.namesOf(tag).toSet == names.toSet + tag && SessionUser.ofConnect(tag) == user)
    }
  }

  private val literals = Table(
    ("expression", "literals"),
    ("FROM orders", Seq("FROM orders")),
    ("(?i)from orders", Seq("from orders")),
    ("^SELECT.*orders$", Seq("SELECT", "orders")),
    ("a\\.orders\\s+x", Seq("a.orders")),
    ("orders?", Seq("order")),
    ("orders{0,1}x orders", Seq("order", "x orders")),
    ("count\\(x\\)", Seq("count(x)")),
    ("(FROM|JOIN [(|]\\)) orders", Seq(" orders")),
    ("(?!not this)orders[^]x[a]] later", Seq("orders", " later")),
    ("orders|sales", Nil),
    ("a(?i)orders", Nil),
    ("\\Qorders\\E", Nil),
    ("ab", Nil)
  )

  forAll(literals) { (expression, literals) =>
    test(s"each match of $expression contains ${literals.mkString("'", "' and '", "'")}") {
      assert(new SqlPattern(expression).literals == literals)
    }
  }

  test("an expression that takes exponential time does not match, and is logged once") {
    val query = Query(text = "a" * 100)
    val rules = index("sql: '(a+)+\\1b'", "user: ann")
    val lines = Logged.by("io.apportion.policies.PolicyFile") {
      assert(rules.matching(query).map(_.number) == Seq(2))
      assert(rules.matching(query).map(_.number) == Seq(2))
    }
    assert(lines.size == 1 && lines.head.startsWith("rule 1 of the policy file was not tested for a query"))
  }

  test("an expression that needs too much stack does not match") {
    assert(matching(Query(text = "ab" * 100000), "sql: (a|b)*c", "user: ann") == Seq(2))
  }
}

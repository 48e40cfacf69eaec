package io.apportion.hints

import scala.collection.mutable

import io.apportion.groups.ExchangeGroup
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.LeftExistence
import org.apache.spark.sql.catalyst.plans.logical
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.exchange.Exchange
import org.apache.spark.sql.{SparkSession, TpcTables}

/**
 * Every query of TPC-DS and TPC-H, planned with a hint on its outermost SELECT, and with one on its innermost. Where an operator
 * comes from is known apart from the blocks as well: Spark's parser leaves in expressions where in the text they stood.
 */
class TpcHintsSuite extends HintSuite {
  private val hint = "PARALLELISM(7)"
  private val settings = Seq(
    "parallelism" -> "3",
    "spark.sql.autoBroadcastJoinThreshold" -> "-1",
    // Where a plan's text is cut off depends on how long its ids are.
    "spark.sql.maxMetadataStringLength" -> "100000",
    "spark.sql.debug.maxToStringFields" -> "1000"
  )

  private lazy val session: SparkSession = {
    val session = newSession(settings: _*)
    TpcTables.createViews(session)
    session
  }

  /** A SELECT in a text: where it starts, and where its block ends. */
  private case class Block(start: Int, end: Int, depth: Int) {
    def contains(position: Int): Boolean = start <= position && position < end
  }

  private def blocks(query: String): Seq[Block] =
    "(?i)\\bselect\\b".r
      .findAllMatchIn(query)
      .map { found =>
        val depth = query.take(found.start).count(_ == '(') - query.take(found.start).count(_ == ')')
        Block(found.start, end(query, found.start), depth)
      }
      .toSeq

  /** The parenthesis that closes the block, the next SELECT of a set operation, or the end. */
  private def end(query: String, start: Int): Int = {
    var depth = 0
    val stop = (start until query.length).find { at =>
      if (query(at) == '(') depth += 1
      if (query(at) == ')') depth -= 1
      depth < 0 || depth == 0 && "(?i)(union|intersect|except)\\b".r.findPrefixOf(query.substring(at)).isDefined
    }
    stop.getOrElse(query.length)
  }

  private def withHint(query: String, block: Block): String = {
    val after = block.start + "select".length
    s"${query.take(after)} /*+ $hint */${query.drop(after)}"
  }

  private def groups(plan: SparkPlan): Seq[ExchangeGroup] = {
    val whole = plan match {
      case adaptive: AdaptiveSparkPlanExec => adaptive.initialPlan
      case other                           => other
    }
    val own = ExchangeGroup
      .collect(whole) ++ whole.collect { case exchange: Exchange => exchange.child }.flatMap(ExchangeGroup.collect)
    own ++ whole.subqueriesAll.flatMap(_.children).flatMap(groups)
  }

  /** Where in the text the operator's own expressions stood, as far as that says where the operator came from. */
  private def positions(operator: SparkPlan): Seq[Int] = {
    val expressions: Seq[Expression] = operator.logicalLink.toSeq.flatMap {
      case aggregate: logical.Aggregate =>
        aggregate.aggregateExpressions.flatMap(_.collect { case function: AggregateExpression => function })
      // The conditions of a semi join stood in the subquery of an EXISTS or IN, or are of a set operation.
      case join: logical.Join if LeftExistence.unapply(join.joinType).isEmpty =>
        join.condition.toSeq.flatMap(_.collect { case comparison: BinaryComparison => comparison })
      case window: logical.Window => window.windowExpressions.flatMap(_.collect { case w: WindowExpression => w })
      case sort: logical.Sort     => sort.order
      case _                      => Nil
    }
    expressions.flatMap(_.origin.startIndex)
  }

  /** The last executions by text, as three tests look at the same plans. All of them would fill the memory. */
  private val executions = mutable.Queue.empty[(String, QueryExecution)]

  private def execution(query: String): QueryExecution =
    executions.collectFirst { case (`query`, execution) => execution }.getOrElse {
      if (executions.size == 3) executions.dequeue()
      val execution = session.sql(query).queryExecution
      executions.enqueue(query -> execution)
      execution
    }

  private def plan(query: String): SparkPlan = execution(query).executedPlan

  private def isHinted(group: ExchangeGroup): Boolean = GroupHints.of(group).parallelism.isDefined

  private val known = mutable.Buffer.empty[Boolean]

  TpcTables.queries.foreach { case (name, query) =>
    val all = blocks(query)
    val outermost = all.filter(_.depth == 0)
    val innermost = all.maxBy(_.depth)

    if (outermost.size == 1)
      test(s"$name: a hint on the outermost block reaches all stages") {
        val found = groups(plan(withHint(query, outermost.head)))
        assert(found.nonEmpty && found.forall(isHinted))
      }

    test(s"$name: a hint on the innermost block reaches the stages of its text, and no others") {
      val block = innermost.copy(end = innermost.end + withHint(query, innermost).length - query.length)
      // What a block takes from a common table expression inherits from it, wherever that stands.
      val usesCte = "(?i)(\\w+)\\s+as\\s*\\(".r
        .findAllMatchIn(query)
        .exists(cte => query.substring(innermost.start, innermost.end).matches(s"(?is).*\\b${cte.group(1)}\\b.*"))
      groups(plan(withHint(query, innermost))).foreach { group =>
        val inside = (group.consumers.take(1) ++ group.inner).map(positions(_).map(block.contains))
        val isIn = inside.exists(at => at.nonEmpty && at.forall(identity))
        val isOut = inside.forall(at => at.nonEmpty && !at.contains(true))
        if (isIn) assert(isHinted(group), group)
        if (isOut && !usesCte) assert(!isHinted(group), group)
        known += isIn || isOut
      }
    }

    test(s"$name: a hint does not change the plan") {
      val plain = session.sql(query).queryExecution
      Seq(outermost.last, innermost).foreach { block =>
        val hinted = execution(withHint(query, block))
        assert(shape(hinted.optimizedPlan) == shape(plain.optimizedPlan))
        assert(shape(hinted.executedPlan) == shape(plain.executedPlan))
      }
    }
  }

  test("the text shows the query block of nearly all stages") {
    assert(known.size > 1000 && known.count(identity) > 0.9 * known.size)
  }
}

package io.apportion.history

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.BaseJoinExec

/**
 * Names what a plan puts out, alike in every run of a query: without literals, ids and the number of subpartitions, and without
 * what Spark chooses anew each time, such as the kind of a join.
 */
private[apportion] object PlanFingerprint {

  def of(plan: SparkPlan): String = {
    val described = columns(plan) + describe(plan)
    MessageDigest.getInstance("SHA-256").digest(described.getBytes(UTF_8)).take(16).map(b => f"$b%02x").mkString
  }

  private def describe(plan: SparkPlan): String = plan match {
    case stage: QueryStageExec      => describe(stage.plan)
    case reused: ReusedExchangeExec => describe(reused.child)
    // Of what is cached.
    case adaptive: AdaptiveSparkPlanExec => describe(adaptive.inputPlan)
    case Transparent(child)              => describe(child)
    case join: BaseJoinExec              => node(join, s"Join ${join.joinType}", joinTerms(join))
    case aggregate: BaseAggregateExec    => node(aggregate, "Aggregate", aggregate.expressions.map(text))
    case scan: FileSourceScanExec        =>
      node(scan, source(scan), (scan.partitionFilters ++ scan.dataFilters).filter(isOwn).map(text))
    case scan: BatchScanExec           => node(scan, s"Scan ${scan.table.name}", Nil)
    case cached: InMemoryTableScanExec =>
      node(cached, describe(cached.relation.cachedPlan), cached.predicates.map(text))
    case other => node(other, other.nodeName, other.expressions.map(text))
  }

  private def node(plan: SparkPlan, name: String, terms: Seq[String]): String = {
    val leaf = if (plan.children.isEmpty) columns(plan) else ""
    s"$name$leaf${terms.mkString("[", ", ", "]")}${plan.children.map(describe).mkString("(", ", ", ")")}"
  }

  private def columns(plan: SparkPlan): String =
    plan.output.map(column => s"${column.name} ${column.dataType.catalogString}").mkString("<", ", ", ">")

  /** Pairs of keys in any order, as Spark may reorder them. */
  private def joinTerms(join: BaseJoinExec): Seq[String] =
    join.leftKeys.zip(join.rightKeys).map { case (left, right) => s"${text(left)} = ${text(right)}" }.sorted ++
      join.condition.map(text)

  private def source(scan: FileSourceScanExec): String = {
    val from =
      scan.tableIdentifier.fold(scan.relation.location.rootPaths.map(_.toString).sorted.mkString(" "))(_.unquotedString)
    s"Scan $from"
  }

  /** Filters that Spark adds while the query runs are there or not. */
  private def isOwn(filter: Expression): Boolean = filter match {
    case _: DynamicPruning => false
    case _                 => true
  }

  private def text(expression: Expression): String = expression
    .transformUp {
      case In(value, list) if list.forall(_.foldable) => In(value, Nil)
      case InSet(value, _)                            => In(value, Nil)
      case literal: Literal                           => Literal(null, literal.dataType)
      case subquery: PlanExpression[_]                => Literal(null, subquery.dataType)
    }
    .toString
    .replaceAll("#\\d+L?", "")

  /** What changes nothing about the rows but where they are and in which order. */
  private object Transparent {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case SortExec(_, false, child, _)                                             => Some(child)
      case ProjectExec(columns, child) if columns.forall(_.isInstanceOf[Attribute]) => Some(child)
      case _: Exchange | _: AQEShuffleReadExec | _: InputAdapter | _: WholeStageCodegenExec | _: ColumnarToRowExec =>
        plan.children.headOption
      case _ => None
    }
  }
}

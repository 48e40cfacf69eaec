package io.apportion.history

import java.util.regex.Pattern

import io.apportion.util.BoundedMap
import org.apache.commons.codec.digest.DigestUtils
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AQEShuffleReadExec, AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.exchange.{Exchange, ReusedExchangeExec}
import org.apache.spark.sql.execution.joins.BaseJoinExec

/**
 * Identity of a plan. It is the same in every run of a query.
 *
 * @param plan     digest of the plan. It leaves out literals, ids and the number of subpartitions, and choices that
 *                 Spark makes again in each run, such as the kind of a join
 * @param literals digest of the literals, and of the parts of paths that `plan` leaves out. It is short, so that many
 *                 values share a digest: a reader of the history cannot find out a secret by guessing
 */
private[apportion] final case class PlanFingerprint(plan: String, literals: String)

private[apportion] object PlanFingerprint {

  def of(plan: SparkPlan): PlanFingerprint = {
    val description = describe(plan)
    val text = columns(plan) + description.text
    PlanFingerprint(digest(text, 16), digest(text + description.literals, 3))
  }

  /** Name of an entry that is about several plans together, or about more than a plan. */
  def combined(parts: Seq[String]): String = digest(parts.mkString("\u0000"), 16)

  /** @param literals digest of all literals, in the order of the text; empty if there are none */
  private final case class Description(text: String, literals: String)

  /**
   * Descriptions of exchanges by id. They are needed many times, because exchanges are nested and Spark plans often.
   */
  private val known = new BoundedMap[Int, Description](256)

  private val IdsInText = Pattern.compile("#\\d+L?")

  private def describe(plan: SparkPlan): Description = plan match {
    case stage: QueryStageExec           => describe(stage.plan)
    case reused: ReusedExchangeExec      => describe(reused.child)
    case subquery: BaseSubqueryExec      => describe(subquery.child)
    case adaptive: AdaptiveSparkPlanExec => describe(adaptive.inputPlan)
    case exchange: Exchange              => known.getOrCompute(exchange.id)(describe(exchange.child))
    case Transparent(child)              => describe(child)
    case join: BaseJoinExec              => node(plan, s"Join ${join.joinType}", joinTerms(join))
    case aggregate: BaseAggregateExec    => node(plan, "Aggregate", aggregate.expressions.map(term))
    case scan: FileSourceScanExec        =>
      val source = scan.tableIdentifier.fold(SourcePath.of(scan.relation.location.rootPaths.map(_.toString)))(table =>
        SourcePath(table.unquotedString, Nil)
      )
      // Spark adds dynamic pruning filters in some runs only.
      val filters = (scan.partitionFilters ++ scan.dataFilters).filterNot(_.isInstanceOf[DynamicPruning])
      node(plan, s"Scan ${source.name}", filters.map(term), source.values)
    case scan: BatchScanExec =>
      val name = scan.table.name
      val source = if (name.contains('/')) SourcePath.of(name.split(',').toSeq) else SourcePath(name, Nil)
      node(plan, s"Scan ${source.name}", Nil, source.values :+ Option(scan.scan).fold("")(_.description))
    case scan: RowDataSourceScanExec =>
      node(plan, scan.nodeName, scan.expressions.map(term), scan.metadata.toSeq.sorted)
    case cached: InMemoryTableScanExec =>
      val below = describe(cached.relation.cachedPlan)
      node(plan, below.text, cached.predicates.map(term), Seq(below.literals))
    case range: RangeExec => node(plan, range.nodeName, Nil, Seq(range.start, range.end, range.step))
    case other            =>
      // For example the number of a LIMIT, or the fraction of a sample.
      val arguments = other.productIterator.collect { case value @ (_: Int | _: Long | _: Double) => value }.toSeq
      node(plan, other.nodeName, other.expressions.map(term), arguments)
  }

  private def node(
      plan: SparkPlan,
      name: String,
      terms: Seq[Description],
      arguments: Seq[Any] = Nil
  ): Description = {
    val leaf = if (plan.children.isEmpty) columns(plan) else ""
    val children = plan.children.map(describe)
    val literals = arguments.map(_.toString) ++ (terms ++ children).map(_.literals)
    Description(
      s"$name$leaf${terms.map(_.text).mkString("[", ", ", "]")}${children.map(_.text).mkString("(", ", ", ")")}",
      if (literals.forall(_.isEmpty)) "" else digest(literals.mkString("\u0000"), 16)
    )
  }

  private def columns(plan: SparkPlan): String =
    plan.output.map(column => s"${column.name} ${column.dataType.catalogString}").mkString("<", ", ", ">")

  /** Join keys and the condition. Pairs of keys are sorted, because Spark may reorder them. */
  private def joinTerms(join: BaseJoinExec): Seq[Description] = {
    val keys = join.leftKeys.zip(join.rightKeys).map { case (left, right) =>
      val (one, other) = (term(left), term(right))
      Description(s"${one.text} = ${other.text}", one.literals + other.literals)
    }
    keys.sortBy(pair => (pair.text, pair.literals)) ++ join.condition.map(term)
  }

  private def term(expression: Expression): Description = {
    val literals = Seq.newBuilder[String]
    val general = expression.transformUp {
      case In(value, list) if list.forall(_.foldable) => In(value, Nil)
      case InSet(value, values)                       =>
        literals ++= values.toSeq.map(String.valueOf).sorted
        In(value, Nil)
      case literal: Literal =>
        literals += literal.toString
        Literal(null, literal.dataType)
      case subquery: PlanExpression[_] =>
        subquery.plan match {
          case plan: SparkPlan => literals += describe(plan).literals
          case _               =>
        }
        Literal(null, subquery.dataType)
    }
    Description(IdsInText.matcher(general.toString).replaceAll(""), literals.result().mkString("\u0001"))
  }

  private def digest(text: String, bytes: Int): String = DigestUtils.sha256Hex(text).take(2 * bytes)

  /** Matches operators that change only the placement and the order of rows, and returns their child. */
  object Transparent {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case SortExec(_, false, child, _)                                                              => Some(child)
      case ProjectExec(columns, child) if columns.forall(_.isInstanceOf[Attribute])                  => Some(child)
      case _: AQEShuffleReadExec | _: InputAdapter | _: WholeStageCodegenExec | _: ColumnarToRowExec =>
        plan.children.headOption
      case _ => None
    }
  }
}

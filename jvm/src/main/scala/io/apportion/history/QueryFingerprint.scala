package io.apportion.history

import org.apache.spark.sql.catalyst.catalog.HiveTableRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * Identity of a query: a digest of its analyzed plan, which is the same in every run. It leaves out literals, ids and
 * hints, and the parts of paths that change from run to run. A new minor version of Spark may change it.
 */
private[apportion] object QueryFingerprint {

  def of(analyzed: LogicalPlan): String = {
    val text = new StringBuilder
    describe(analyzed, text)
    PlanFingerprint.combined(Seq(text.result()))
  }

  private def describe(plan: LogicalPlan, text: StringBuilder): Unit = {
    text ++= plan.nodeName += '['
    plan match {
      case relation: LogicalRelation =>
        relation.catalogTable match {
          case Some(table) => text ++= table.identifier.unquotedString
          case None        =>
            relation.relation match {
              case files: HadoopFsRelation => text ++= SourcePath.of(files.location.rootPaths.map(_.toString)).name
              case other                   => text ++= other.getClass.getSimpleName
            }
        }
      case relation: HiveTableRelation    => text ++= relation.tableMeta.identifier.unquotedString
      case relation: DataSourceV2Relation => text ++= relation.name
      case view: View                     => text ++= view.desc.identifier.unquotedString
      case alias: SubqueryAlias           => text ++= alias.identifier.name
      case join: Join                     => text ++= join.joinType.sql
      case _                              =>
    }
    if (plan.children.isEmpty) plan.output.foreach(describe(_, text))
    else plan.expressions.foreach(describe(_, text))
    text ++= "]("
    plan.children.foreach(describe(_, text))
    text += ')'
  }

  private def describe(expression: Expression, text: StringBuilder): Unit = expression match {
    case literal: Literal             => text ++= "? " ++= literal.dataType.typeName += ','
    case attribute: Attribute         => text ++= attribute.name += ' ' ++= attribute.dataType.typeName += ','
    case subquery: SubqueryExpression =>
      text ++= subquery.nodeName += '('
      subquery.children.foreach(describe(_, text))
      describe(subquery.plan, text)
      text += ')'
    case in: In if in.list.forall(_.foldable) =>
      text ++= "In("
      describe(in.value, text)
      text += ')'
    case other =>
      text ++= other.nodeName
      other match {
        case alias: Alias => text += ' ' ++= alias.name
        case cast: Cast   => text += ' ' ++= cast.dataType.typeName
        case _            =>
      }
      text += '('
      other.children.foreach(describe(_, text))
      text += ')'
  }
}

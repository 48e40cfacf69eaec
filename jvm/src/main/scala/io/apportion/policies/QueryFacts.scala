package io.apportion.policies

import java.util.Locale

import io.apportion.history.QueryFingerprint
import io.apportion.rules.CurrentQuery
import org.apache.spark.apportion.SessionUser
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, HiveTableRelation}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  InsertIntoHadoopFsRelationCommand,
  LogicalRelation,
  SaveIntoDataSourceCommand
}

/** Facts about a query that rules test. Each is found when the first rule needs it. */
private[policies] trait QueryFacts {

  /** The user of the session, or of the application if the session has none of its own. */
  def user: String
  def application: String
  def jobTags: Seq[String]

  /** Tables, views and paths that the query reads. A table has the parts of its name, and a path has one part. */
  def reads: Seq[Seq[String]]

  /** Sequences of characters in the own names of the tables, views and paths that the query reads. */
  lazy val trigramsOfReads: Trigrams = Trigrams.ofNames(reads.map(_.last))

  /** Tables and paths that the query writes. */
  def writes: Seq[Seq[String]]

  def catalogs: Seq[String]

  /** The text of the query, if it was submitted as text. */
  def sql: Option[SqlText]

  def fingerprint: String
}

/** Facts about a query with this analyzed plan, in the thread that plans it. */
private[policies] final class PlanFacts(session: SparkSession, plan: LogicalPlan) extends QueryFacts {
  import PlanFacts._

  private val sparkContext = session.sparkContext

  override lazy val user: String = SessionUser.of(sparkContext)

  override def application: String = sparkContext.appName

  override lazy val jobTags: Seq[String] = sparkContext.getJobTags().toSeq.flatMap(namesOf)

  override lazy val sql: Option[SqlText] = {
    val texts = plan.collect {
      case node if node.origin.sqlText.isDefined => (node.origin.objectName.isDefined, node.origin.sqlText.get)
    }
    // Nodes of a view have the text of the view.
    texts.find(!_._1).orElse(texts.headOption).map { case (_, text) => new SqlText(text) }
  }

  override lazy val fingerprint: String = QueryFingerprint.of(plan)

  private lazy val nodes: Seq[LogicalPlan] = nodesOf(plan)

  override lazy val reads: Seq[Seq[String]] = nodes.flatMap(sources).distinct

  /** A command may run its query in an execution of its own, which does not show the table that the command writes. */
  override lazy val writes: Seq[Seq[String]] =
    (nodes ++ CurrentQuery.outermost(session).map(_.analyzed)).flatMap(targets).distinct

  override lazy val catalogs: Seq[String] =
    (reads ++ writes).collect { case name if name.size >= 3 => name.head.toLowerCase(Locale.ROOT) }.distinct
}

private[policies] object PlanFacts {

  // SparkSession.managedJobTags (4.0), and ExecuteSessionTag of Connect (3.5 to 4.2)
  private val Uuid = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
  private val TagOfSession = s"(?s)spark-session-$Uuid-(.*)".r
  private val TagOfConnect = s"(?s)SparkConnect_SessionTag_User_.*_Session_${Uuid}_Tag_(.*)".r

  /** The job tag of Spark's scheduler, and the tag that the user set. */
  private[policies] def namesOf(tag: String): Seq[String] = tag match {
    case TagOfSession(own) => Seq(tag, own)
    case TagOfConnect(own) => Seq(tag, own)
    case _                 => Seq(tag)
  }

  /** Spark's name of the catalog of tables that have no other one. */
  private val SessionCatalog = "spark_catalog"

  private def nodesOf(plan: LogicalPlan): Seq[LogicalPlan] = {
    val found = plan.collectWithSubqueries { case node => node }
    // The query of some commands is not a child.
    val inner = found.collect { case command: Command => command.innerChildren }.flatten
    found ++ inner.collect { case query: LogicalPlan => query }.flatMap(nodesOf)
  }

  private def sources(node: LogicalPlan): Seq[Seq[String]] = node match {
    case relation: LogicalRelation =>
      (relation.catalogTable, relation.relation) match {
        case (Some(table), _)             => Seq(nameOf(table))
        case (_, files: HadoopFsRelation) => files.location.rootPaths.map(path => Seq(path.toString))
        case _                            => Nil
      }
    case relation: HiveTableRelation    => Seq(nameOf(relation.tableMeta))
    case relation: DataSourceV2Relation => Seq(nameOf(relation))
    case view: View                     => Seq(nameOf(view.desc.identifier))
    case _                              => Nil
  }

  private def targets(node: LogicalPlan): Seq[Seq[String]] = node match {
    case write: V2WriteCommand                    => targetOf(write.table)
    case merge: MergeIntoTable                    => targetOf(merge.targetTable)
    case update: UpdateTable                      => targetOf(update.table)
    case delete: DeleteFromTable                  => targetOf(delete.table)
    case create: V2CreateTablePlan                => targetOf(create.name)
    case files: InsertIntoHadoopFsRelationCommand =>
      files.catalogTable.map(nameOf).toSeq :+ Seq(files.outputPath.toString)
    case save: SaveIntoDataSourceCommand => save.options.get("path").toSeq.map(Seq(_))
    case command: Command with Product   =>
      // Hive and Delta have commands of their own.
      command.productIterator.collect {
        case table: CatalogTable       => nameOf(table)
        case Some(table: CatalogTable) => nameOf(table)
      }.toSeq
    case _ => Nil
  }

  private def targetOf(table: LogicalPlan): Seq[Seq[String]] = table match {
    case ResolvedIdentifier(catalog, table) => Seq(catalog.name +: table.namespace.toSeq :+ table.name)
    case alias: SubqueryAlias               => targetOf(alias.child)
    case other                              => sources(other)
  }

  private def nameOf(relation: DataSourceV2Relation): Seq[String] = relation.identifier match {
    case Some(table) => relation.catalog.map(_.name).toSeq ++ table.namespace :+ table.name
    case None        => Seq(relation.table.name)
  }

  private def nameOf(table: CatalogTable): Seq[String] = nameOf(table.identifier)

  private def nameOf(table: TableIdentifier): Seq[String] = table.database match {
    case Some(database) => Seq(table.catalog.getOrElse(SessionCatalog), database, table.table)
    case None           => Seq(table.table)
  }
}

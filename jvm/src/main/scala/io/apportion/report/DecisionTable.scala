package io.apportion.report

import io.apportion.util.TableFunction
import org.apache.spark.apportion.SessionUser
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Expression

/** Table function `apportion_decisions([sessions])`. */
private[apportion] object DecisionTable {
  private val Name = "apportion_decisions"

  val function: TableFunction.Description = TableFunction(
    Name,
    "_FUNC_([sessions]) - Returns the latest decisions of this session about the parallelism of stages, oldest first. " +
      "With 'all', returns those of all sessions of the application. With ACLs, only users that may view its UI can.",
    DecisionRecord.schema
  )(rows)

  private def rows(session: SparkSession, arguments: Seq[Expression]): Seq[Row] =
    (arguments match {
      case Seq() => DecisionLog.of(session).all
      case Seq(argument) if argument.foldable && s"${argument.eval()}".toLowerCase == "all" => ofAll(session)
      case other                                                                            =>
        val wrong = other.map(_.sql).mkString(", ")
        throw new IllegalArgumentException(s"$Name takes no argument or 'all', but got $wrong")
    }).map(_.toRow)

  private def ofAll(session: SparkSession): Seq[DecisionRecord] = {
    val context = session.sparkContext
    val user = SessionUser.of(context)
    if (!SessionUser.mayView(context, user))
      throw new SecurityException(
        s"$Name('all') is only for users that may view the UI of the application, and $user may not. Spark's settings " +
          "spark.ui.view.acls, spark.ui.view.acls.groups and spark.admin.acls name the users"
      )
    DecisionLog.ofAllSessions.sortBy(record => (record.decidedAt.getTime, record.query, record.group))
  }
}

package org.apache.spark.apportion

import org.apache.spark.SparkContext
import org.apache.spark.sql.catalyst.CurrentUserContext

/** The user of the session whose query this thread plans. */
object SessionUser {

  // ExecuteJobTag of Connect (3.5 to 4.2)
  private val Uuid = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
  private val OperationOfConnect = s"(?s)SparkConnect_OperationTag_User_(.*)_Session_${Uuid}_Operation_$Uuid".r

  /** The user of the session, or of the application if the session has none of its own. */
  def of(context: SparkContext): String = Option(CurrentUserContext.CURRENT_USER.get)
    .orElse(context.getJobTags().flatMap(ofConnect).headOption)
    .getOrElse(context.sparkUser)

  /** Whether this user may see the UI of the application (`spark.ui.view.acls`). Everybody may without ACLs. */
  def mayView(context: SparkContext, user: String): Boolean = context.env.securityManager.checkUIViewPermissions(user)

  /** The user of the Connect session that set a job tag for its query. */
  def ofConnect(tag: String): Option[String] = tag match {
    case OperationOfConnect(user) => Some(user)
    case _                        => None
  }
}

package io.apportion.history

import java.security.PrivilegedAction

import scala.util.Try

import org.apache.hadoop.security.UserGroupInformation

/**
 * The user that the application runs as: the user of the thread that starts the application. It is not the login user
 * if spark-submit has `--proxy-user`, or in a YARN application master. It is not the user of a session that a server
 * opens later.
 */
private[apportion] object ApplicationUser {
  private var isCaptured = false
  private var captured = Option.empty[UserGroupInformation]

  /** The thread that starts the application calls this before the first session. Later calls do nothing. */
  def capture(): Unit = synchronized {
    if (!isCaptured) {
      // The login user is not kept, as Spark may log in again with a keytab. `run` gets the current login user.
      captured = Try(UserGroupInformation.getCurrentUser).toOption.filterNot(_ == UserGroupInformation.getLoginUser)
      isCaptured = true
    }
  }

  def run(body: Runnable): Unit = {
    val action: PrivilegedAction[Unit] = () => body.run()
    synchronized(captured).getOrElse(UserGroupInformation.getLoginUser).doAs(action)
  }
}

package io.apportion.history

import java.security.PrivilegedAction

import scala.util.Try

import org.apache.hadoop.security.UserGroupInformation

/**
 * The user that the application runs as. That is the user of the thread that starts it: not the login user where spark-submit has
 * `--proxy-user` or in a YARN application master, and not the user of a session that a server opens later.
 */
private[apportion] object ApplicationUser {
  private var isCaptured = false
  private var captured = Option.empty[UserGroupInformation]

  /** Called by the thread that starts the application, before there is a session; later calls change nothing. */
  def capture(): Unit = synchronized {
    if (!isCaptured) {
      // The login user is asked for when it is needed, as Spark may log in again, with a keytab.
      captured = Try(UserGroupInformation.getCurrentUser).toOption.filterNot(_ == UserGroupInformation.getLoginUser)
      isCaptured = true
    }
  }

  def run(body: Runnable): Unit = {
    val action: PrivilegedAction[Unit] = () => body.run()
    synchronized(captured).getOrElse(UserGroupInformation.getLoginUser).doAs(action)
  }
}

package io.apportion.report

import io.apportion.SparkSuite
import org.apache.spark.sql.{ActiveSession, SparkSession}
import org.apache.spark.sql.catalyst.CurrentUserContext

/** `apportion_decisions` with the decisions of one session, and of all. */
class DecisionTableSuite extends SparkSuite {

  override protected def submitTimeConf: Map[String, String] =
    Map("spark.acls.enable" -> "true", "spark.ui.view.acls" -> "ann")

  private val aggregate = "SELECT k, count(*) FROM numbers GROUP BY k"

  private def tasks(session: SparkSession, arguments: String): Seq[Int] =
    session.sql(s"SELECT tasks FROM apportion_decisions($arguments)").collect().map(_.getInt(0)).toSeq

  private def as[T](user: String)(body: => T): T = {
    CurrentUserContext.CURRENT_USER.set(user)
    try body
    finally CurrentUserContext.CURRENT_USER.remove()
  }

  private def refused(arguments: String): String =
    withSession()(session => intercept[Exception](tasks(session, arguments)).getMessage)

  test("all returns the decisions of all sessions, in the order in which they were made") {
    val (first, second) = (newSession("parallelism" -> "3"), newSession("parallelism" -> "5"))
    Seq(first, second, first).foreach { session =>
      ActiveSession.in(session)(session.sql(aggregate).collect())
      // Times are in milliseconds.
      Thread.sleep(2)
    }
    assert(ActiveSession.in(first)(tasks(first, "")) == Seq(3, 3))
    for (all <- Seq("'all'", "'ALL'", "lower('All')"))
      assert(as("ann")(ActiveSession.in(first)(tasks(first, all))).takeRight(3) == Seq(3, 5, 3))
  }

  test("all is refused for users that may not view the UI, and the message names Spark's settings") {
    val message = as("bob")(refused("'all'"))
    assert(message.contains("bob may not") && message.contains("spark.ui.view.acls"))
  }

  test("other arguments are refused with the value and what is allowed") {
    for (wrong <- Seq("'some'", "3", "null", "'all', 'all'"))
      assert(refused(wrong).contains(s"apportion_decisions takes no argument or 'all', but got"))
  }
}

package org.apache.spark.sql.apportion

import io.apportion.decision.ValueSource
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.trees.TreeNode
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.internal.SQLConf

/** Conf of a query that has values of its own, in place of those of its session. */
trait QueryConf { self: SQLConf =>

  /** Source of the query's own value of a key. */
  def sourceOf(key: String): Option[ValueSource]
}

object QueryConf {

  /** Finds the conf for the query that a plan is part of, if it has values of its own. The last argument is the running query. */
  type Finder = (TreeNode[_], SparkSession, () => Option[QueryExecution]) => Option[SQLConf]

  @volatile private var finder: Finder = (_, _, _) => None

  /** Lets rules find confs. Rules do not know the code that gives queries values of their own. */
  def findBy(code: Finder): Unit = finder = code

  def of(plan: TreeNode[_], session: SparkSession, running: () => Option[QueryExecution]): Option[SQLConf] =
    finder(plan, session, running)
}

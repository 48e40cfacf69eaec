package io.apportion.safety

import java.util.concurrent.atomic.AtomicInteger

import scala.collection.mutable

import io.apportion.SparkSuite
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Row, SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, Partitioning}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec
import org.apache.spark.sql.execution.metric.SQLMetric

/** Operators of other libraries that throw when Apportion asks them something. Queries must not notice. */
class InjectedExceptionsSuite extends SparkSuite {
  override protected def rulesFail: Boolean = true

  override protected def extension: SparkSessionExtensions => Unit = { extensions =>
    extensions.injectQueryStagePrepRule(_ => WrapOperators)
    super.extension(extensions)
  }

  private val queries = Seq(
    "an aggregate" -> "SELECT k, count(*), sum(id) FROM numbers GROUP BY k",
    "a join" -> "SELECT /*+ MERGE(few) */ few.id, count(*) FROM numbers JOIN few USING (k) GROUP BY few.id",
    "a broadcast join" -> "SELECT /*+ BROADCAST(few) */ few.id, count(*) FROM numbers JOIN few USING (k) GROUP BY few.id",
    "a union" -> "SELECT k, max(id) FROM numbers GROUP BY k UNION ALL SELECT k, min(id) FROM few GROUP BY k",
    "a subquery" -> "SELECT k, count(*) FROM numbers WHERE id > (SELECT avg(id) FROM few) GROUP BY k"
  )

  private val failures = Seq(
    "an exception" -> (() => throw new IllegalStateException("on purpose")),
    "a method that this Spark does not have" -> (() => throw new NoSuchMethodError("on purpose"))
  )

  private lazy val expected = withSession()(session => queries.map { case (_, query) => rows(session, query) })

  /** How often each member threw an exception in its test. */
  private val thrownBy = mutable.Map.empty[String, Int]

  /** Runs the queries while a member throws, compares their rows, and returns how often it threw. */
  private def thrown(member: String, failure: () => Nothing): Int = {
    val before = expected
    withSession() { session =>
      Throwing.during(member, failure) {
        for (((what, query), its) <- queries.zip(before)) assert(rows(session, query) == its, what)
      }
    }
  }

  for ((kind, failure) <- failures; member <- Throwing.Members)
    test(s"queries return their rows if $member of an operator throws $kind") {
      val times = thrown(member, failure)
      if (failure == failures.head._2) thrownBy(member) = times
    }

  test("most members throw when Apportion decides") {
    // If this test runs alone, it has to run the queries itself.
    val thrown = Throwing.Members.filter { member =>
      thrownBy.getOrElse(member, this.thrown(member, failures.head._2)) > 0
    }
    assert(thrown.size > Throwing.Members.size / 2, s"only ${thrown.mkString(", ")}")
  }

  private def rows(session: SparkSession, query: String): Seq[Row] =
    sortedRows(session.sql(query))
}

/** The member that throws, while a test says so. */
private object Throwing {
  val Members: Seq[String] = Seq(
    "output",
    "children",
    "nodeName",
    "outputPartitioning",
    "outputOrdering",
    "requiredChildDistribution",
    "requiredChildOrdering",
    "metrics",
    "withNewChildren"
  )

  @volatile private var now = Option.empty[(String, () => Nothing)]
  private val thrown = new AtomicInteger

  def isOn: Boolean = now.isDefined

  /** Runs the body while this member throws. Returns how often it threw. */
  def during(member: String, failure: () => Nothing)(body: => Unit): Int = {
    thrown.set(0)
    now = Some(member -> failure)
    try body
    finally now = None
    thrown.get
  }

  /** Throws if this member has to, and Apportion's own code asks for it. */
  def in(member: String): Unit = for ((`member`, failure) <- now if isAskedByApportion) {
    thrown.incrementAndGet()
    failure()
  }

  private def isAskedByApportion: Boolean = Thread.currentThread.getStackTrace.exists { frame =>
    val name = frame.getClassName
    name.startsWith("io.apportion.") && !name.startsWith("io.apportion.safety.") &&
    !name.startsWith("io.apportion.SparkSuite")
  }
}

/** Puts an operator that can throw above each aggregate and join. */
private object WrapOperators extends Rule[SparkPlan] {
  override def apply(plan: SparkPlan): SparkPlan =
    if (!Throwing.isOn) plan
    else
      plan.transformUp { case wrapped @ (_: BaseAggregateExec | _: BaseJoinExec) =>
        ThrowingExec(wrapped)
      }
}

private case class ThrowingExec(below: SparkPlan) extends SparkPlan {
  private def checked[T](member: String)(value: => T): T = {
    Throwing.in(member)
    value
  }

  override def children: Seq[SparkPlan] = checked("children")(Seq(below))
  override def output: Seq[Attribute] = checked("output")(below.output)
  override def nodeName: String = checked("nodeName")("Throwing")
  override def outputPartitioning: Partitioning = checked("outputPartitioning")(below.outputPartitioning)
  override def outputOrdering: Seq[SortOrder] = checked("outputOrdering")(below.outputOrdering)
  override def requiredChildDistribution: Seq[Distribution] =
    checked("requiredChildDistribution")(super.requiredChildDistribution)
  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    checked("requiredChildOrdering")(super.requiredChildOrdering)
  override lazy val metrics: Map[String, SQLMetric] = checked("metrics")(Map.empty[String, SQLMetric])
  override protected def doExecute(): RDD[InternalRow] = below.execute()
  override protected def withNewChildrenInternal(newChildren: IndexedSeq[SparkPlan]): SparkPlan =
    checked("withNewChildren")(copy(newChildren.head))
}

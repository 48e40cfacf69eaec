package org.apache.spark.sql.apportion.exchange

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.AQEShuffleReadExec
import org.apache.spark.sql.types.{ArrayType, IntegerType}

/**
 * Keeps, in each task, the rows whose keys fall into the task's part. Several tasks read the same shuffle partition below
 * this operator, and each keeps another part of it. Equal keys are in the same part, also of the other side of a join.
 *
 * @param parts for each task, the index of its part and the number of parts
 */
case class KeySplitExec(
    override val outputPartitioning: CoalescedHashPartitioning,
    parts: Seq[(Int, Int)],
    child: SparkPlan
) extends UnaryExecNode
    with CodegenSupport {

  override def output: Seq[Attribute] = child.output

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def stringArgs: Iterator[Any] = {
    val split = parts.count { case (_, n) => n > 1 }
    val keys = outputPartitioning.from.expressions
    Iterator(keys.mkString("[", ", ", "]"), s"$split of ${parts.size} tasks keep parts of a partition")
  }

  /** Spark's own filter runs in place of this operator, which is in the plan for its partitioning. */
  private lazy val filter: FilterExec = {
    def ofTask(values: Seq[Int]) =
      GetArrayItem(Literal.create(values.toArray, ArrayType(IntegerType, containsNull = false)), SparkPartitionID())
    val (part, n) = (ofTask(parts.map(_._1)), ofTask(parts.map(_._2)))
    // A hash of Spark's own hash, as keys with a collation are equal that differ in their bytes. Its values in one shuffle
    // partition have a common rest.
    val hash = new Murmur3Hash(Seq(outputPartitioning.from.copy(numPartitions = Int.MaxValue).partitionIdExpression))
    FilterExec(Or(EqualTo(n, Literal(1)), EqualTo(Pmod(hash, n), part)), child)
  }

  override protected def doExecute(): RDD[InternalRow] = filter.execute()

  override def inputRDDs(): Seq[RDD[InternalRow]] = filter.inputRDDs()

  override protected def doProduce(context: CodegenContext): String = filter.produce(context, parent)

  override def doConsume(context: CodegenContext, input: Seq[ExprCode], row: ExprCode): String =
    throw new IllegalStateException("the filter consumes the rows")

  override protected def withNewChildInternal(newChild: SparkPlan): KeySplitExec = copy(child = newChild)
}

object KeySplitExec {

  /**
   * The partitioning is like that of a coalesced read (SPARK-45592): a cached result must not count as rows that Spark's own
   * hash divides. The end of a part is its negative index, so that no two layouts are equal.
   */
  def of(shuffle: HashPartitioning, parts: Seq[(Int, Int)], read: AQEShuffleReadExec): KeySplitExec = {
    val boundaries =
      read.partitionSpecs.zip(parts).collect { case (CoalescedPartitionSpec(from, until, _), (part, n)) =>
        CoalescedBoundary(from, if (n == 1) until else -part)
      }
    KeySplitExec(CoalescedHashPartitioning(shuffle, boundaries), parts, read)
  }
}

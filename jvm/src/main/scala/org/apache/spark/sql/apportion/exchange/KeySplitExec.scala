package org.apache.spark.sql.apportion.exchange

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.plans.physical.{HashPartitioning, Partitioning}
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}

/**
 * Keeps, in each task, the rows whose keys fall into the task's part. Several tasks read the same shuffle partition below
 * this operator, and each keeps another part of it. Equal keys are in the same part, also of the other side of a join.
 *
 * @param keys  keys that the shuffle is partitioned by
 * @param parts for each task, the index of its part and the number of parts
 */
case class KeySplitExec(keys: Seq[Expression], parts: Seq[(Int, Int)], child: SparkPlan)
    extends UnaryExecNode
    with CodegenSupport {
  import KeySplitExec._

  override def output: Seq[Attribute] = child.output

  override def outputPartitioning: Partitioning = HashPartitioning(keys, parts.size)

  override def outputOrdering: Seq[SortOrder] = child.outputOrdering

  override protected def stringArgs: Iterator[Any] = {
    val split = parts.count { case (_, n) => n > 1 }
    Iterator(keys.mkString("[", ", ", "]"), s"$split of ${parts.size} tasks keep parts of a partition")
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val (hash, columns, parts) = (secondHash, child.output, this.parts.toIndexedSeq)
    child.execute().mapPartitionsWithIndex { (index, rows) =>
      val (part, n) = parts(index)
      if (n == 1) rows
      else {
        val hashOf = UnsafeProjection.create(Seq(hash), columns)
        hashOf.initialize(index)
        rows.filter(row => Math.floorMod(hashOf(row).getInt(0), n) == part)
      }
    }
  }

  /** Of Spark's own hash, as keys with a collation are equal that differ in their bytes. */
  private def secondHash: Expression =
    new Murmur3Hash(Seq(HashPartitioning(keys, Int.MaxValue).partitionIdExpression), Seed)

  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()

  override protected def doProduce(context: CodegenContext): String =
    child.asInstanceOf[CodegenSupport].produce(context, this)

  override def doConsume(context: CodegenContext, input: Seq[ExprCode], row: ExprCode): String = {
    val all = context.addReferenceObj("parts", parts.flatMap { case (part, n) => Seq(part, n) }.toArray, "int[]")
    val part = context.addMutableState(CodeGenerator.JAVA_INT, "part", name => s"$name = $all[2 * partitionIndex];")
    val n =
      context.addMutableState(CodeGenerator.JAVA_INT, "numParts", name => s"$name = $all[2 * partitionIndex + 1];")
    context.currentVars = input
    val hash = BindReferences.bindReference(secondHash, child.output).genCode(context)
    // A loop of its own, as in `FilterExec`: Spark may put this code into a method without a loop.
    s"""
       |do {
       |  if ($n > 1) {
       |    ${hash.code}
       |    if (java.lang.Math.floorMod(${hash.value}, $n) != $part) continue;
       |  }
       |  ${consume(context, input)}
       |} while (false);
     """.stripMargin
  }

  override protected def withNewChildInternal(newChild: SparkPlan): KeySplitExec = copy(child = newChild)
}

object KeySplitExec {

  /** Another seed than that of the shuffle, so that the hashes do not depend on each other. */
  private val Seed = 0x5bd1e995
}

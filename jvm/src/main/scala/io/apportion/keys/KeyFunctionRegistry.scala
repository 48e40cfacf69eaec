package io.apportion.keys

import io.apportion.keys.Arguments._
import io.apportion.keys.FlinkKeys.MostKeyGroups
import io.apportion.keys.KeyFunction.{Definition, Description}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, Literal, Pmod}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

/** SQL functions about keys: the task that gets a key, surrogates that are spread evenly, and the same for Flink. */
object KeyFunctionRegistry {
  private val tasksMeaning = "p" -> "number of tasks, a constant"
  private val subpartitionsMeaning = "n" -> "number of shuffle partitions, a constant, at least p"
  private val columnMeaning = "column" -> "a partitioning column, with the type that it has in the partitioned rows"
  private val parallelismMeaning = "parallelism" -> s"number of parallel operators, a constant, at most $MostKeyGroups"
  private val maxParallelismMeaning = "max_parallelism" -> s"number of key groups, a constant, at most $MostKeyGroups"
  private val defaultMeaning =
    maxParallelismMeaning._1 -> s"${maxParallelismMeaning._2}; the default is flink_max_parallelism(parallelism)"

  private val rangeType = new StructType().add("start", IntegerType, false).add("end", IntegerType, false)

  /** Arguments of `SparkSessionExtensions.injectFunction`, for each function. */
  val descriptions: Seq[Description] = Seq(
    new Definition(
      "even_key",
      "k, p[, n]",
      LongType,
      "A surrogate for key k. Spark's hash partitioning puts the surrogate in task k mod p, so that p consecutive " +
        "keys fill p tasks evenly. Keys less than p * 2^32 apart have different surrogates.",
      arguments = Seq(
        "k" -> "a whole number",
        "p" -> s"${tasksMeaning._2}, at most ${EvenKeys.MostTasks}",
        "n" -> (s"${subpartitionsMeaning._2}; tasks read even ranges of these partitions; " +
          "the default is p, for repartition(p, surrogate)")
      ),
      examples = Seq("_FUNC_(7, 5)" -> "4468190088", "task_of(5, 64, _FUNC_(-1, 5, 64))" -> "4")
    )({
      case Seq(key, tasks, subpartitions @ _*) if subpartitions.size <= 1 =>
        for {
          p <- constant("p", tasks, max = EvenKeys.MostTasks)
          n <- subpartitions.headOption.fold[Checked[Int]](Right(p))(constant("n", _, min = p))
          k <- integer("k", key)
        } yield StaticCall.of(EvenKeys, "surrogate", LongType)(
          k,
          Literal(p),
          Literal(EvenKeys.of(p, n), ObjectType(classOf[EvenKeys]))
        )
    }),
    new Definition(
      "subpartition_of",
      "n, column, ...",
      IntegerType,
      "The shuffle partition, from 0 to n - 1, that Spark's hash partitioning by these columns puts a row in.",
      arguments = Seq("n" -> "number of shuffle partitions, a constant", columnMeaning),
      examples = Seq("_FUNC_(200, 'Berlin')" -> "42", "_FUNC_(200, 7, CAST(NULL AS STRING))" -> "107")
    )({
      case Seq(subpartitions, columns @ _*) if columns.nonEmpty =>
        constant("n", subpartitions).map(subpartition(columns, _))
    }),
    new Definition(
      "task_of",
      "p, n, column, ...",
      IntegerType,
      "The task, from 0 to p - 1, that reads a row. Spark's hash partitioning by these columns makes n shuffle " +
        "partitions, and the p tasks read even ranges of them.",
      arguments = Seq(tasksMeaning, subpartitionsMeaning, columnMeaning),
      examples = Seq("_FUNC_(4, 16, 'Berlin')" -> "2")
    )({
      case Seq(tasks, subpartitions, columns @ _*) if columns.nonEmpty =>
        for {
          p <- constant("p", tasks)
          n <- constant("n", subpartitions, min = p)
        } yield StaticCall.of(EvenKeys, "taskOf", IntegerType)(subpartition(columns, n), Literal(p), Literal(n))
    }),
    new Definition(
      "flink_max_parallelism",
      "parallelism",
      IntegerType,
      "Flink's default maximum parallelism, which is the number of key groups, for operators of this parallelism.",
      arguments = Seq(parallelismMeaning),
      examples = Seq("_FUNC_(5)" -> "128", "_FUNC_(100)" -> "256")
    )({ case Seq(parallelism) =>
      flinkConstant("parallelism", parallelism).map(p => Literal(FlinkKeys.maxParallelism(p)))
    }),
    new Definition(
      "flink_key_group",
      "key, max_parallelism",
      IntegerType,
      "The key group of a key in Flink's DataStream API. A BIGINT is a Long there, a smaller whole number is an " +
        "Integer.",
      arguments = Seq("key" -> "a string or a whole number", maxParallelismMeaning),
      examples = Seq("_FUNC_(1, 128)" -> "86", "_FUNC_('Berlin', 128)" -> "46")
    )({ case Seq(key, maxParallelism) =>
      for {
        m <- flinkConstant("max_parallelism", maxParallelism)
        hash <- hashCodeOf("key", key)
      } yield StaticCall.of(FlinkKeys, "keyGroup", IntegerType)(hash, Literal(m))
    }),
    new Definition(
      "flink_operator_index",
      "key_group, parallelism[, max_parallelism]",
      IntegerType,
      "The index of the parallel operator that owns a key group in Flink.",
      arguments = Seq("key_group" -> "a whole number", parallelismMeaning, defaultMeaning),
      examples = Seq("_FUNC_(86, 5)" -> "3", "_FUNC_(flink_key_group(1, 256), 5, 256)" -> "4")
    )({
      case Seq(keyGroup, parallelism, maxParallelism @ _*) if maxParallelism.size <= 1 =>
        for {
          p <- flinkConstant("parallelism", parallelism)
          m <- maxParallelismOr(p, maxParallelism)
          g <- integer("key_group", keyGroup)
        } yield StaticCall.of(FlinkKeys, "operatorIndex", IntegerType)(g, Literal(p), Literal(m))
    }),
    new Definition(
      "flink_key_group_range",
      "index, parallelism[, max_parallelism]",
      rangeType,
      "The first and the last key group of a parallel operator in Flink.",
      arguments = Seq("index" -> "index of the operator, a whole number from 0", parallelismMeaning, defaultMeaning),
      examples = Seq("_FUNC_(1, 5)" -> """{"start":26,"end":51}""")
    )({
      case Seq(index, parallelism, maxParallelism @ _*) if maxParallelism.size <= 1 =>
        for {
          p <- flinkConstant("parallelism", parallelism)
          m <- maxParallelismOr(p, maxParallelism, min = p)
          i <- integer("index", index)
        } yield StaticCall.of(KeyFunctionRegistry, "keyGroupRange", rangeType)(i, Literal(p), Literal(m))
    }),
    new Definition(
      "flink_rebalance_keys",
      "parallelism[, max_parallelism]",
      ArrayType(IntegerType, containsNull = false),
      "For each parallel operator in Flink, the smallest Integer key from 0 that it gets. To spread keys k evenly, " +
        "use the element at position k mod parallelism instead of k.",
      arguments = Seq(parallelismMeaning, defaultMeaning),
      examples = Seq("_FUNC_(5)" -> "[4,9,10,0,2]")
    )({
      case Seq(parallelism, maxParallelism @ _*) if maxParallelism.size <= 1 =>
        for {
          p <- flinkConstant("parallelism", parallelism)
          m <- maxParallelismOr(p, maxParallelism, min = p)
        } yield Literal(
          ArrayData.toArrayData(FlinkKeys.rebalanceKeys(p, m)),
          ArrayType(IntegerType, containsNull = false)
        )
    })
  ).map(_.description)

  /** The result of [[FlinkKeys.keyGroupRange]] as a Spark row. */
  def keyGroupRange(index: Long, parallelism: Int, maxParallelism: Int): InternalRow = {
    val (start, end) = FlinkKeys.keyGroupRange(index, parallelism, maxParallelism)
    InternalRow(start, end)
  }

  private def subpartition(columns: Seq[Expression], n: Int): Expression =
    HashPartitioning(columns, n).partitionIdExpression match {
      case pmod: Pmod => StaticCall.of(EvenKeys, "subpartitionOf", IntegerType)(pmod.left, Literal(n))
      case other      => other
    }

  private def flinkConstant(name: String, argument: Expression, min: Int = 1): Checked[Int] =
    constant(name, argument, min, MostKeyGroups)

  private def maxParallelismOr(parallelism: Int, explicit: Seq[Expression], min: Int = 1): Checked[Int] =
    explicit.headOption.fold[Checked[Int]](Right(FlinkKeys.maxParallelism(parallelism)))(
      flinkConstant("max_parallelism", _, min)
    )

  /** Java's `hashCode` of a key. */
  private def hashCodeOf(name: String, key: Expression): Checked[Expression] = key.dataType match {
    case ByteType | ShortType | IntegerType => Right(Cast(key, IntegerType))
    case LongType                           => Right(StaticCall.of(FlinkKeys, "hashOfLong", IntegerType)(key))
    case _: StringType                      => Right(StaticCall.of(FlinkKeys, "hashOfString", IntegerType)(key))
    case NullType                           => Left(IsNull)
    case _                                  => wrongType(name, key, s"STRING, $IntegerTypes")
  }
}

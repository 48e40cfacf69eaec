package io.apportion.report

import io.apportion.util.{TableColumns, TableFunction}
import io.apportion.util.TableColumns.column
import org.apache.spark.apportion.SessionUser
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Expression, GenericRowWithSchema}
import org.apache.spark.sql.types._

/** Table function `apportion_decisions([sessions])`, and its columns, which the events of decisions also have. */
private[apportion] object DecisionTable {
  private val Name = "apportion_decisions"

  /** A column, and its value in a record. */
  private final case class Column(field: StructField, value: DecisionRecord => Any)

  private def col(name: String, dataType: DataType, doc: String)(value: DecisionRecord => Any): Column =
    Column(column(name, dataType, doc), value)

  private lazy val columns: Seq[Column] = Seq(
    col("query", LongType, "SQL execution id of the query")(_.query.orNull),
    col("group", IntegerType, "number of the group of shuffles within its query")(_.group),
    col("decided_at", TimestampType, "time of the decision")(_.decidedAt),
    col("operator", StringType, "operator that reads the shuffles, or the scan")(_.operator),
    col("stages", ArrayType(IntegerType), "ids of the query stages that are read")(_.stages),
    col("shuffles", ArrayType(IntegerType), "ids of the shuffles that are read")(_.shuffles),
    col(
      "input_bytes",
      LongType,
      "stored bytes of the shuffles; with `volume.measure=estimated`, bytes of their rows; for files, bytes of the columns that " +
        "are read plus the cost of opening the files"
    )(_.inputBytes),
    col("broadcast_bytes", LongType, "bytes of the broadcasts that each task also reads")(_.broadcastBytes),
    col("data_volume_per_task", LongType, "target size per task, in bytes")(_.dataVolumePerTask.orNull),
    col("broadcast_cap", LongType, "maximum share of the target size for broadcasts, in bytes")(_.broadcastCap.orNull),
    col("raw", LongType, "tasks that the target size asks for")(_.raw.orNull),
    col(
      "rounded",
      LongType,
      "`raw` after rounding: to the nearest power of two, or as `rounding` says; for scans, not rounded"
    )(_.rounded.orNull),
    col("clamps", ArrayType(StringType), "limits that changed the number, in order")(_.clamps),
    col("subpartitions", IntegerType, "shuffle partitions of each shuffle, the maximum number of ranges")(
      _.subpartitions
    ),
    col(
      "levels",
      ArrayType(IntegerType),
      "numbers of groups of shuffle partitions that map tasks wrote; empty if Spark wrote the shuffles"
    )(_.levels),
    col("blocks", LongType, "blocks that map tasks wrote; null if Spark wrote the shuffles")(_.blocks.orNull),
    col("sparks_blocks", LongType, "blocks that Spark would have written at most")(_.sparksBlocks.orNull),
    col("bytes_read_twice", LongType, "bytes that tasks read beyond those of their own shuffle partitions")(
      _.bytesReadTwice
    ),
    col(
      "parallelism",
      IntegerType,
      "tasks that were decided, before ranges are halved or split; with `mode=observe`, tasks that Apportion would have decided"
    )(_.parallelism),
    col("tasks", IntegerType, "tasks that Spark launches")(_.tasks),
    col(
      "ranges",
      ArrayType(StructType(Seq(StructField("start", IntegerType), StructField("end", IntegerType)))),
      "shuffle partitions that each task reads, the end excluded; empty for local reads and unchanged groups"
    )(_.ranges.toSeq.map { case (start, end) => Row(start, end) }),
    col(
      "layout",
      StringType,
      "even, balanced, skew (parts of map outputs), keys (parts of keys), local, files, unchanged, or observed (Spark's layout)"
    )(_.layout),
    col(
      "largest_task_bytes",
      LongType,
      "bytes that the largest task reads; for local reads the mean, for scans the maximum"
    )(_.largestTaskBytes),
    col("mean_task_bytes", LongType, "bytes that a task reads on average")(_.meanTaskBytes),
    col("sources", MapType(StringType, StringType), "source of each setting's value, by the name of the setting")(
      _.sources
    ),
    col("kind", StringType, "limit that decided in the end, or the formula")(_.kind),
    col("reason", StringType, "the decision in one sentence")(_.reason),
    col("requirement", TableColumns.Requirement, "task slots that the stage declares: min, target and max")(
      _.requirement.map(TableColumns.requirement).orNull
    ),
    col("slots", IntegerType, "task slots of the registered executors")(_.slots.orNull),
    col("slots_lost", IntegerType, "task slots that the query had lost at the time of the decision")(_.slotsLost),
    col(
      "limited_by_partitions",
      DoubleType,
      "tasks that the bytes ask for, as a multiple of the shuffle partitions; null if there are enough partitions"
    )(_.limitedByPartitions.orNull),
    col(
      "largest_task_memory",
      LongType,
      "bytes of execution memory for the rows that the largest task holds; null if `memory.enabled` is false"
    )(_.largestTaskMemory.orNull),
    col("task_memory", LongType, "bytes of execution memory that the rows of a task may fill")(_.taskMemory.orNull),
    col(
      "outcome",
      Outcome.schema,
      "what happened when the tasks ran; null until the stage has ended. It has the id of the Spark stage, " +
        "the bytes spilled to disk, and the largest execution memory of a task. Times are in milliseconds. " +
        "Failures are attempts of tasks"
    )(_.outcome.map(_.toRow).orNull)
  )

  /** The columns, each with its description as a comment. */
  lazy val schema: StructType = StructType(columns.map(_.field))

  /** A decision as a row of the table. */
  def row(record: DecisionRecord): Row =
    new GenericRowWithSchema(columns.map(_.value(record)).toArray[Any], schema)

  val function: TableFunction.Description = TableFunction(
    Name,
    "_FUNC_([sessions]) - Returns the latest decisions of this session about the parallelism of stages, oldest first. " +
      "With 'all', returns those of all sessions of the application. With ACLs, only users that may view its UI can.",
    schema
  )(rows)

  private def rows(session: SparkSession, arguments: Seq[Expression]): Seq[Row] =
    (arguments match {
      case Seq() => DecisionLog.of(session).all
      case Seq(argument) if argument.foldable && s"${argument.eval()}".toLowerCase == "all" => ofAll(session)
      case other                                                                            =>
        val wrong = other.map(_.sql).mkString(", ")
        throw new IllegalArgumentException(s"$Name takes no argument or 'all', but got $wrong")
    }).map(row)

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

package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement
import io.apportion.groups.Advisor
import io.apportion.hints.HintedTime
import io.apportion.util.{TableColumns, TableFunction}
import io.apportion.util.TableColumns.column
import org.apache.spark.apportion.Cluster
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.CommandExecutionMode
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The table function `apportion_slots(query[, slots[, finish_within]])`. It returns a row for each stage, for each group
 * of stages that share task slots, and for the query.
 */
private[apportion] object PlannedSlots {
  private val AllStages = "query"
  private val SharingGroup = "group"

  def function(advisors: Seq[Advisor]): TableFunction.Description = TableFunction(
    "apportion_slots",
    "_FUNC_(query[, slots[, finish_within]]) - Plans a query without running it, and returns the task slots that each " +
      "stage needs. It also returns the share of each stage if stages that can run at the same time share this number " +
      "of slots. The default is the number of available slots. With a time such as '10 min', it returns the smallest " +
      "number of slots with which the query ends in time.",
    schema
  )(rows(_, _, advisors))

  private def rows(session: SparkSession, arguments: Seq[Expression], advisors: Seq[Advisor]): Seq[Row] = {
    val (sql, given, finishWithin) = read(arguments)
    val slots = given.getOrElse(Cluster.slots(session.sparkContext))
    // It is planned, but does not run.
    val query =
      session.sessionState.executePlan(session.sessionState.sqlParser.parsePlan(sql), CommandExecutionMode.SKIP)
    val stages = PlannedStages.of(session, query, advisors)
    // Stages with different resource profiles never share slots.
    val shares = stages.indices
      .groupBy(number => (stages(number).depth, stages(number).profile))
      .values
      .flatMap(own => own.zip(sharesOf(slots, own.map(stages(_).requirement))))
      .toMap
    val groups = stages.groupBy(_.profile).toSeq.sortBy(_._1)
    val needs = groups.map { case (_, own) => SlotSharing.within(own.map(_.requirement)) }
    val ofStages = stages.zipWithIndex.map { case (stage, number) =>
      row(stage.kind, stage.requirement, Seq(stage))(
        "stage" -> number,
        "operator" -> stage.operator,
        "reads" -> stage.reads,
        "depth" -> stage.depth,
        "profile" -> stage.profile,
        "bytes" -> stage.bytes,
        "tasks" -> stage.tasks.toLong,
        "slots" -> shares(number),
        "why" -> stage.why
      )
    }
    val ofGroups = groups.zip(needs).zip(sharesOf(slots, needs)).map { case (((profile, own), need), share) =>
      row(SharingGroup, need, own)("profile" -> profile, "slots" -> share)
    }
    ofStages ++ ofGroups :+ row(AllStages, SlotSharing.across(needs), stages)(
      "tasks" -> PlannedStages.atOnce(stages),
      "slots" -> slots,
      "plan" -> finishWithin.map(TimedPlan.of(session, query, stages, _))
    )
  }

  /** A row for these stages. Columns without a value are null. */
  private def row(kind: String, requirement: ResourceRequirement, stages: Seq[PlannedStage])(
      others: (String, Any)*
  ): Row = {
    val spec = stages.map(_.spec).reduce(_ + _)
    val values = others.toMap ++ Map(
      "kind" -> kind,
      "requirement" -> TableColumns.requirement(requirement),
      "spec" -> Row(spec.cores, spec.memoryBytes, spec.overheadBytes, spec.custom)
    )
    Row.fromSeq(schema.map(column => values.getOrElse(column.name, None)).map {
      case Some(value) => value
      case None        => null
      case value       => value
    })
  }

  private def sharesOf(slots: Int, needs: Seq[ResourceRequirement]): Seq[Option[Int]] =
    SlotDistribution.deal(slots, needs).fold(needs.map(_ => Option.empty[Int]))(_.map(Some(_)))

  private def read(arguments: Seq[Expression]): (String, Option[Int], Option[Long]) = {
    def refused = new IllegalArgumentException(
      "apportion_slots takes the text of a query and, optionally, a number of slots, 1 or more or null, and a time " +
        s"such as '10 min'. It got ${arguments.map(_.sql).mkString("(", ", ", ")")}"
    )
    if (!arguments.forall(_.foldable)) throw refused
    arguments.map(_.eval()).padTo(3, null) match {
      case Seq(query: UTF8String, slots, time) =>
        val number = Option(slots).map {
          case n: Int if n > 0 => n
          case _               => throw refused
        }
        val within = Option(time).map {
          case text: UTF8String => HintedTime.millis(text.toString).getOrElse(throw refused)
          case _                => throw refused
        }
        (query.toString, number, within)
      case _ => throw refused
    }
  }

  /** The columns, with their meaning as comments. */
  lazy val schema: StructType = StructType(
    Seq(
      column("stage", IntegerType, "number of the stage; null for a group of stages and for the query"),
      column(
        "kind",
        StringType,
        "use of the stage's output: shuffle, broadcast, subquery or result; " +
          s"$SharingGroup for a group of stages, $AllStages for the query"
      ),
      column("operator", StringType, "operator that reads the shuffles or scans the files"),
      column("reads", ArrayType(IntegerType), "numbers of the stages that it reads"),
      column(
        "depth",
        IntegerType,
        "number of stages that must run before it, one after the other; stages of the same depth can run together"
      ),
      column("profile", IntegerType, "id of the resource profile; stages with the same profile share slots"),
      column("bytes", LongType, "estimated bytes that the stage reads; null if unknown"),
      column(
        "tasks",
        LongType,
        "estimated number of tasks; for the query, the tasks of all stages that can run at the same time"
      ),
      column(
        "requirement",
        TableColumns.Requirement,
        "task slots that it declares: min, target and max"
      ),
      column(
        "spec",
        StructType.fromDDL("cores DOUBLE, memory_bytes BIGINT, overhead_bytes BIGINT, custom MAP<STRING, DOUBLE>"),
        "resources of one slot; for a group and for the query, the sum over the stages"
      ),
      column(
        "slots",
        IntegerType,
        "share of the slots; null if the stages that can run at the same time need more"
      ),
      column("why", StringType, "reason for the number of tasks and the requirement"),
      column(
        "plan",
        TimedPlan.schema,
        "plan to end in time, for the query; null without `finish_within`. Times are seconds from the start"
      )
    )
  )
}

package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement
import io.apportion.groups.Advisor
import io.apportion.hints.HintedTime
import io.apportion.util.{TableColumns, TableFunction}
import io.apportion.util.TableColumns.column
import org.apache.spark.apportion.{Cluster, ResourceSpec}
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Expression
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
    val (query, given, finishWithin) = read(arguments)
    val slots = given.getOrElse(Cluster.slots(session.sparkContext))
    val stages = PlannedStages.of(session, query, advisors)
    val needs = stages.map(_.need)
    val groups = SlotSharing.groups(needs).toSeq.sortBy(_._1)
    // Stages with different resource profiles never share slots.
    val dealt = stages
      .groupBy(stage => (stage.need.depth, stage.need.profile))
      .values
      .flatMap(own => own.map(_.number).zip(sharesOf(slots, own.map(_.need.requirement))))
      .toMap
    val ofGroups = groups.map(_._2)
    val timed = finishWithin.map(TimedPlan.of(session, query, stages, _))
    stages.map(ofStage(_, dealt)) ++
      groups.zip(sharesOf(slots, ofGroups)).map { case ((profile, all), share) =>
        total(SharingGroup, Some(profile), None, all, needs.filter(_.profile == profile), share)
      } :+
      total(AllStages, None, Some(SlotSharing.atOnce(needs)), SlotSharing.across(ofGroups), needs, Some(slots), timed)
  }

  private def sharesOf(slots: Int, needs: Seq[ResourceRequirement]): Seq[Option[Int]] =
    SlotDistribution.deal(slots, needs).fold(needs.map(_ => Option.empty[Int]))(_.map(Some(_)))

  private def read(arguments: Seq[Expression]): (String, Option[Int], Option[Long]) = {
    def refused = new IllegalArgumentException(
      "apportion_slots takes the text of a query and, optionally, a number of slots, 1 or more or null, and a time " +
        s"such as '10 min'. It got ${arguments.map(_.sql).mkString("(", ", ", ")")}"
    )
    if (arguments.isEmpty || arguments.size > 3 || !arguments.forall(_.foldable)) throw refused
    arguments.map(_.eval()).padTo(3, null) match {
      case Seq(query: UTF8String, slots, time) =>
        val number = slots match {
          case null            => None
          case n: Int if n > 0 => Some(n)
          case _               => throw refused
        }
        val within = time match {
          case null             => None
          case text: UTF8String => Some(HintedTime.millis(text.toString).getOrElse(throw refused))
          case _                => throw refused
        }
        (query.toString, number, within)
      case _ => throw refused
    }
  }

  private def ofStage(stage: PlannedStage, dealt: Map[Int, Option[Int]]): Row = Row(
    stage.number,
    stage.kind,
    stage.operator,
    stage.reads,
    stage.need.depth,
    stage.need.profile,
    stage.bytes.orNull,
    stage.tasks.toLong,
    TableColumns.requirement(stage.need.requirement),
    specOf(stage.need.spec),
    dealt(stage.number).orNull,
    stage.why,
    null
  )

  private def total(
      kind: String,
      profile: Option[Int],
      atOnce: Option[Long],
      need: ResourceRequirement,
      stages: Seq[StageNeed],
      slots: Option[Int],
      timed: Option[Row] = None
  ): Row =
    Row(
      null,
      kind,
      null,
      null,
      null,
      profile.orNull,
      null,
      atOnce.orNull,
      TableColumns.requirement(need),
      specOf(stages.map(_.spec).reduce(_ + _)),
      slots.orNull,
      null,
      timed.orNull
    )

  private def specOf(spec: ResourceSpec): Row = Row(spec.cores, spec.memoryBytes, spec.overheadBytes, spec.custom)

  /** The columns, with their meaning as comments. */
  val schema: StructType = StructType(
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
        StructType(
          Seq(
            StructField("cores", DoubleType),
            StructField("memory_bytes", LongType),
            StructField("overhead_bytes", LongType),
            StructField("custom", MapType(StringType, DoubleType))
          )
        ),
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

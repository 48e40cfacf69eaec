package io.apportion.resources.planned

import io.apportion.decision.ResourceRequirement
import io.apportion.rules.{TableColumns, TableFunction}
import io.apportion.rules.TableColumns.column
import org.apache.spark.apportion.Cluster
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The table function `apportion_slots(query[, slots])`. It has a row for each stage, for each group of stages that share slots, and for the query. */
private[apportion] object PlannedSlots {
  private val AllStages = "query"
  private val SharingGroup = "group"

  def function: TableFunction.Description = TableFunction(
    "apportion_slots",
    "_FUNC_(query[, slots]) - The slots that each stage of a query would need, which is planned for that and does not run; and " +
      "how so many slots, or those that are there, would be dealt to stages that can run at once.",
    schema
  )(rows)

  private def rows(session: SparkSession, arguments: Seq[Expression]): Seq[Row] = {
    val (query, given) = read(arguments)
    val slots = given.getOrElse(Cluster.slots(session.sparkContext))
    val stages = PlannedStages.of(session, query)
    val needs = stages.map(_.need)
    val groups = SlotSharing.groups(needs).toSeq.sortBy(_._1)
    // Stages of different profiles are never in each other's slots.
    val dealt = stages
      .groupBy(stage => (stage.need.depth, stage.need.profile))
      .values
      .flatMap(own => own.map(_.number).zip(sharesOf(slots, own.map(_.need.requirement))))
      .toMap
    val ofGroups = groups.map(_._2)
    stages.map(ofStage(_, dealt)) ++
      groups.zip(sharesOf(slots, ofGroups)).map { case ((profile, all), share) =>
        total(SharingGroup, Some(profile), None, all, share)
      } :+
      total(AllStages, None, Some(SlotSharing.atOnce(needs)), SlotSharing.across(ofGroups), Some(slots))
  }

  private def sharesOf(slots: Int, needs: Seq[ResourceRequirement]): Seq[Option[Int]] =
    SlotDistribution.deal(slots, needs).fold(needs.map(_ => Option.empty[Int]))(_.map(Some(_)))

  private def read(arguments: Seq[Expression]): (String, Option[Int]) = {
    def refused = new IllegalArgumentException(
      s"apportion_slots takes the text of a query and, if not those that are there, a number of slots, 1 or more; not " +
        arguments.map(_.sql).mkString("(", ", ", ")")
    )
    if (arguments.isEmpty || arguments.size > 2 || !arguments.forall(_.foldable)) throw refused
    arguments.map(_.eval()) match {
      case Seq(query: UTF8String)                          => (query.toString, None)
      case Seq(query: UTF8String, slots: Int) if slots > 0 => (query.toString, Some(slots))
      case _                                               => throw refused
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
    specOf(stage.need.requirement),
    dealt(stage.number).orNull,
    stage.why
  )

  private def total(
      kind: String,
      profile: Option[Int],
      atOnce: Option[Long],
      need: ResourceRequirement,
      slots: Option[Int]
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
      specOf(need),
      slots.orNull,
      null
    )

  private def specOf(need: ResourceRequirement): Row =
    Row(need.spec.cores, need.spec.memoryBytes, need.spec.overheadBytes, need.spec.custom)

  /** The columns, each with what it holds. */
  val schema: StructType = StructType(
    Seq(
      column("stage", IntegerType, "number of the stage; none for a group of stages and for the query"),
      column(
        "kind",
        StringType,
        s"what becomes of its rows: shuffle, broadcast, subquery or result; or $SharingGroup or $AllStages"
      ),
      column("operator", StringType, "what reads its shuffles or scans its files"),
      column("reads", ArrayType(IntegerType), "stages that it reads"),
      column(
        "depth",
        IntegerType,
        "stages that run before it, one after the other; those of equal depth can run at once"
      ),
      column("profile", IntegerType, "id of the resource profile: stages with the same one share slots"),
      column("bytes", LongType, "bytes that it is likely to read, if these can be estimated"),
      column(
        "tasks",
        LongType,
        "tasks that it is likely to have; of the query, those of all stages that can run at once"
      ),
      column(
        "requirement",
        TableColumns.Requirement,
        "slots that it declares: least, wanted, and the most that it can use"
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
        "what a slot is made of; of a group, for all its stages together"
      ),
      column("slots", IntegerType, "its share of the slots; none if these are too few for all that run at once"),
      column("why", StringType, "what its tasks and requirement come from")
    )
  )
}

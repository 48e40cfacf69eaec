package org.apache.spark.apportion.ui

import java.util.NoSuchElementException

import scala.collection.mutable

import io.apportion.outcomes.OutcomeEvent
import io.apportion.report.{DecisionEvent, QueryEvent}
import io.apportion.util.BoundedMap
import com.fasterxml.jackson.annotation.JsonProperty
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.execution.ui.{SQLExecutionUIData, SparkPlanGraphNode, SparkPlanGraphWrapper}
import org.apache.spark.status.{
  ElementTrackingStore,
  RDDOperationClusterWrapper,
  RDDOperationGraphWrapper,
  StageDataWrapper
}
import org.apache.spark.status.api.v1.{StageData, StageStatus}
import org.apache.spark.status.KVUtils.{viewToSeq, KVIndexParam}
import org.apache.spark.util.kvstore.KVStore

/**
 * A decision in the UI's store. It is kept as JSON text, which only the page of a query parses. A store on disk needs the names
 * of the fields of all its entries.
 */
private[spark] final class QueryDecision(
    @JsonProperty("id") @KVIndexParam val id: Long,
    @JsonProperty("query") @KVIndexParam("query") val query: Long,
    @JsonProperty("json") val json: String
) {
  def decision: JsonNode = DecisionStore.mapper.readTree(json)
}

/**
 * Summary of all decisions of a query.
 *
 * @param text  beginning of the text of the query; empty if it was not submitted as text
 * @param tasks tasks that ran; Spark plans some parts of a query again, and their first tasks never run
 */
private[spark] final case class QuerySummary(
    @JsonProperty("query") @KVIndexParam query: Long,
    @JsonProperty("text") text: String,
    @JsonProperty("decisions") decisions: Int = 0,
    @JsonProperty("tasks") tasks: Long = 0,
    @JsonProperty("largestTaskBytes") largestTaskBytes: Long = 0,
    @JsonProperty("spilledBytes") spilledBytes: Long = 0,
    @JsonProperty("memoryFailures") memoryFailures: Long = 0
)

/** The decisions of an application, in the store behind the UI. */
private[spark] final class DecisionStore(store: KVStore) {

  /** Number of queries with decisions. */
  def queries: Int = store.count(classOf[QuerySummary]).toInt

  /** A part of these queries, newest first. */
  def newest(skipped: Int, count: Int): Seq[QuerySummary] =
    viewToSeq(store.view(classOf[QuerySummary]).reverse().skip(skipped.toLong).max(count.toLong))

  /** The decisions of one query, in the order they were made. */
  def of(query: Long): Seq[QueryDecision] =
    viewToSeq(store.view(classOf[QueryDecision]).index("query").first(query).last(query)).sortBy(_.id)

  /** The summary of one query. */
  def summary(query: Long): Option[QuerySummary] = read(classOf[QuerySummary], query)

  /** What Spark's own tab knows about a query; `None` if Spark has dropped it. */
  def execution(query: Long): Option[SQLExecutionUIData] = read(classOf[SQLExecutionUIData], query)

  /** The operators of the last plan of a query, as Spark's own tab draws it. */
  def nodes(query: Long): Seq[SparkPlanGraphNode] =
    read(classOf[SparkPlanGraphWrapper], query).toSeq.flatMap(_.toSparkPlanGraph().allNodes)

  /** The stages with these ids, without those that Spark skipped or has dropped. */
  private[ui] def ran(stages: Iterable[Int]): Seq[RanStage] = {
    val attempts = stages.toSeq.distinct.map(attemptsOf).filter(_.nonEmpty)
    val graphs = attempts.flatMap(found => read(classOf[RDDOperationGraphWrapper], found.head.stageId))
    // The skipped copy of a stage has the same RDDs, and a map stage is the only one with the RDD that writes its shuffle.
    val stagesOf = graphs.flatMap(graph => rdds(graph.rootCluster).map(_ -> graph.stageId)).groupMap(_._1)(_._2)
    val parents = graphs.map { graph =>
      graph.stageId -> graph.incomingEdges.toSeq.flatMap(edge => stagesOf.getOrElse(edge.fromId, Nil)).distinct.sorted
    }.toMap
    attempts.map { found =>
      val id = found.head.stageId
      RanStage(
        id,
        found.maxBy(_.attemptId).numTasks,
        found.map(attempt => attempt.inputBytes + attempt.shuffleReadBytes).sum,
        found.map(attempt => attempt.shuffleWriteBytes + attempt.outputBytes).sum,
        found.map(_.diskBytesSpilled).sum,
        found.map(_.executorRunTime).sum,
        parents.getOrElse(id, Nil)
      )
    }
  }

  /** The attempts of a stage that ran. */
  private def attemptsOf(stage: Int): Seq[StageData] =
    viewToSeq(store.view(classOf[StageDataWrapper]).index("stageId").first(stage).last(stage))
      .map(_.info)
      .filterNot(attempt => Set(StageStatus.SKIPPED, StageStatus.PENDING)(attempt.status))

  private def rdds(cluster: RDDOperationClusterWrapper): Seq[Int] =
    cluster.childNodes.map(_.id).toSeq ++ cluster.childClusters.flatMap(rdds)

  private def read[T](of: Class[T], key: Any): Option[T] =
    try Some(store.read(of, key))
    catch { case _: NoSuchElementException => None }
}

private[spark] object DecisionStore {
  private[ui] val mapper = new ObjectMapper

  /** Limits of the number of stored decisions and of their total length. The oldest queries are dropped first. */
  private val MaxKept = 10000
  private val MaxCharacters = 64L << 20

  /** Maximum number of queries whose text waits for a decision, and characters of a text. */
  private val MaxTexts = 100
  private val MaxText = 500

  private def shortened(text: String): String =
    if (text.length > MaxText) s"${text.take(MaxText)} … (${text.length - MaxText} more characters)" else text

  /** Writes the decisions of an application to a store, while it runs or while its event log is read. */
  final class Writer(store: ElementTrackingStore, maxKept: Int = MaxKept, maxCharacters: Long = MaxCharacters)
      extends SparkListener {
    private val queries = mutable.LinkedHashMap.empty[Long, Kept]

    /** Texts of queries without decisions so far. Many queries never have one. */
    private val texts = new BoundedMap[Long, String](MaxTexts)
    private var next = 0L
    private var kept = 0
    private var characters = 0L

    override def onOtherEvent(event: SparkListenerEvent): Unit = event match {
      case DecisionEvent(decision) if decision.path("query").isIntegralNumber =>
        keep(decision.path("query").asLong, decision)
      case QueryEvent(query) if query.path("query").isIntegralNumber =>
        texts.put(query.path("query").asLong, shortened(query.path("sql").asText("")))
      case OutcomeEvent(outcome) => complete(outcome.path("query").asLong, outcome)
      case _                     =>
    }

    /** Adds what happened to a decision that is in the store. */
    private def complete(query: Long, outcome: JsonNode): Unit =
      for (entry <- queries.get(query); id <- entry.groups.get(outcome.path("group").asInt)) {
        mapper.readTree(store.read(classOf[QueryDecision], id).json) match {
          case decision: ObjectNode =>
            decision.set[JsonNode]("outcome", outcome)
            store.write(new QueryDecision(id, query, decision.toString))
          case _ =>
        }
        entry.addOutcome(outcome.path("group").asInt, outcome)
        store.write(entry.summary)
      }

    private def keep(query: Long, decision: JsonNode): Unit = {
      val entry = queries.getOrElseUpdate(query, new Kept(QuerySummary(query, texts.remove(query).getOrElse(""))))
      val json = decision.toString
      while (isFull(json) && queries.head._1 != query) drop(queries.head._1)
      if (entry.ids.isEmpty || !isFull(json)) {
        store.write(new QueryDecision(next, query, json))
        entry.ids += next
        entry.groups(decision.path("group").asInt) = next
        entry.characters += json.length
        kept += 1
        characters += json.length
      }
      next += 1
      entry.add(decision)
      store.write(entry.summary)
    }

    private def isFull(json: String): Boolean = kept + 1 > maxKept || characters + json.length > maxCharacters

    private def drop(query: Long): Unit = for (entry <- queries.remove(query)) {
      entry.ids.foreach(id => store.delete(classOf[QueryDecision], id))
      store.delete(classOf[QuerySummary], query)
      kept -= entry.ids.size
      characters -= entry.characters
    }
  }

  /** The decisions of a query that are in the store. */
  private final class Kept(var summary: QuerySummary) {
    val ids = mutable.ArrayBuffer.empty[Long]

    /** Id of the decision about each group. */
    val groups = mutable.Map.empty[Int, Long]
    var characters = 0L

    /** Tasks of the decisions whose stages have not ended. */
    private val tasks = mutable.Map.empty[Int, Long]

    def add(decision: JsonNode): Unit = {
      tasks(decision.path("group").asInt) = decision.path("tasks").asLong
      val largest = summary.largestTaskBytes.max(decision.path("largest_task_bytes").asLong)
      summary = summary.copy(decisions = summary.decisions + 1, largestTaskBytes = largest)
    }

    def addOutcome(group: Int, outcome: JsonNode): Unit =
      summary = summary.copy(
        tasks = summary.tasks + tasks.remove(group).getOrElse(0L),
        spilledBytes = summary.spilledBytes + outcome.path("spilled_bytes").asLong,
        memoryFailures = summary.memoryFailures + outcome.path("memory_failures").asLong
      )
  }
}

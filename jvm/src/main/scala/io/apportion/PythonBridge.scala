package io.apportion

import scala.collection.immutable.ListMap
import scala.jdk.CollectionConverters._

import io.apportion.decision.{Decider, Input}
import io.apportion.decision.memory.HeldRows
import io.apportion.decision.ranges.Bytes
import io.apportion.outcomes.FinalPlan
import io.apportion.policies.RuleSettings
import io.apportion.report.{DecisionRecord, DecisionTable, RowJson}
import io.apportion.resources.SlotSettings
import io.apportion.settings.{SessionPolicy, SettingEntry, SettingRegistry, Settings}
import io.apportion.streams.{StreamEvent, StreamLog, StreamRecord}
import org.apache.spark.apportion.{Cluster, ExecutorResources, ListenerBus, StageMetrics}
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.module.scala.DefaultScalaModule
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.apportion.{ShuffleBlocks, StreamBatches}
import org.apache.spark.sql.execution.QueryExecution
import org.apache.spark.sql.streaming.StreamingQuery

/** The methods that the Python package calls through py4j. Arguments and results are JSON. */
object PythonBridge {
  private val json = new ObjectMapper().registerModule(DefaultScalaModule)

  /** Returns the settings registry; `python/apportion/settings.json` is its export. */
  def settings(): String = {
    ApportionExtension.registerSettings()
    write(SettingRegistry.all.map(describe))
  }

  /**
   * Decides for inputs from the caller instead of a query. Settings of the request override those of the session.
   *
   * @param request `{"inputs": [{"bytes": [...], "broadcast": false, "held": {"per_byte": 0.0, "arrays": []}}], "settings": {name: value}}`
   * @return the decision, with the columns of `apportion_decisions()`
   */
  def decide(session: SparkSession, request: String): String = {
    val root = json.readTree(request)
    val inputs = root.path("inputs").elements.asScala.map(input).toSeq
    val conf = session.sessionState.conf.clone()
    val settings = root.path("settings")
    settings.fieldNames.asScala.foreach(name =>
      conf.setConfString(SettingEntry.Prefix + name, settings.get(name).asText)
    )
    val bytes = inputs.filterNot(_.broadcast).map(input => Bytes.sum(input.bytes)).foldLeft(0L)(Bytes.add)
    val policy = new SessionPolicy(conf, session.sparkContext).policy(bytes = bytes)
    RowJson.of(DecisionTable.row(DecisionRecord.of(Decider.decide(inputs, policy), policy))).toString
  }

  /** Starts to count the shuffle blocks that later stages write. */
  def watchStages(session: SparkSession): Unit = ShuffleBlocks.in(session.sparkContext)

  /** Returns metrics of the finished stages of a job group. */
  def stageMetrics(session: SparkSession, jobGroup: String): String =
    write(StageMetrics.ofJobGroup(session.sparkContext, jobGroup))

  /** Returns the operators of a query's plan after it ran. */
  def finalPlan(query: QueryExecution): String = write(FinalPlan.operators(query.executedPlan))

  /**
   * Records a batch or a rescale of a stream for `apportion_streams()`, and posts it to the listener bus. Refuses wrong
   * records.
   *
   * @param record a JSON object with the fields of [[StreamRecord.schema]]
   */
  def reportStream(session: SparkSession, record: String): Unit = {
    val stream = StreamRecord.parse(record)
    StreamLog.of(session.sparkContext).add(stream)
    if (Settings.EventsEnabled.get(session.sessionState.conf))
      ListenerBus.post(session.sparkContext, StreamEvent(stream.json))
  }

  /**
   * Waits for the next batch of a stream, at most `millis`.
   *
   * @param after timestamp of the last known report; null if none is known
   * @return `{"ended": false, "progress": [...], "bytes": {"shuffled": [...], "broadcast": 0}}`. `bytes` are those of
   * the last report, or null.
   */
  def awaitBatch(session: SparkSession, query: StreamingQuery, after: String, millis: Long): String = {
    // Asked first, so that the reports of an ended query are complete.
    val ended = !query.isActive
    val reports = StreamBatches.await(query, Option(after), millis)
    val bytes = for {
      last <- reports.lastOption
      bytes <- StreamBatches.bytesOf(session, query, last)
    } yield write(ListMap[String, Any]("shuffled" -> bytes.shuffled, "broadcast" -> bytes.broadcast))
    s"""{"ended": $ended, "progress": [${reports.map(_.json).mkString(", ")}], "bytes": ${bytes.getOrElse("null")}}"""
  }

  /** The most task slots that the application has, or can get by a request for executors or by dynamic allocation. */
  def mostSlots(session: SparkSession): Int = {
    val context = session.sparkContext
    val settings = SlotSettings.of(session.sessionState.conf, context)
    if (settings.asks) settings.need.max
    else ExecutorResources.dynamicBounds(context).fold(Cluster.slots(context))(_._2)
  }

  private def describe(setting: SettingEntry[_]): ListMap[String, Any] = ListMap(
    "name" -> setting.name,
    "key" -> setting.key,
    "category" -> setting.category.title,
    "type" -> setting.kind,
    "default" -> setting.default.orNull,
    "defaultText" -> setting.defaultText,
    "allowed" -> setting.allowed.data,
    "allowedText" -> setting.allowed.text,
    "static" -> setting.isStatic,
    "notInPolicies" -> RuleSettings.refusal(setting).orNull,
    "doc" -> setting.doc,
    "since" -> SettingEntry.Since
  )

  private def input(node: JsonNode): Input =
    new Input(
      node.path("bytes").elements.asScala.map(_.asLong).toArray,
      node.path("broadcast").asBoolean,
      held = HeldRows(
        node.path("held").path("per_byte").asDouble,
        node.path("held").path("arrays").elements.asScala.map(_.asDouble).toSeq
      )
    )

  private def write(value: Any): String = json.writeValueAsString(value)
}

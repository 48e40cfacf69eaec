package io.apportion.history

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.TimeUnit

import scala.annotation.tailrec
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path}
import org.slf4j.LoggerFactory

/** The files of a history: one for each entry, named by its fingerprint. Only one thread uses them at a time. */
private[history] final class HistoryFiles(directory: Path, conf: Configuration) {
  import HistoryFiles._

  @volatile private var opened = Option.empty[FileSystem]
  private val broken = mutable.Set.empty[String]

  override def toString: String = directory.toString

  /** Reads an entry: empty if there is no file, or it cannot be used. The log names each unusable file once. */
  def read(fingerprint: String): Runs = textOf(fingerprint).map(parse(_, fingerprint)) match {
    case None                => Runs.none
    case Some(Right(runs))   => runs
    case Some(Left(problem)) =>
      if (broken.add(fingerprint)) log.warn(s"History entry ${file(fingerprint)} is ignored: $problem")
      Runs.none
  }

  /**
   * Adds runs to a file and returns the new entry. Other applications may change the file at the same time. A run is lost
   * if one does so between the read and the write here, as there are no locks.
   */
  @tailrec def add(fingerprint: String, runs: Runs, attempts: Int = MaxAttempts): Runs = {
    val before = read(fingerprint)
    val after = before.add(runs)
    if ((after eq before) || replace(file(fingerprint), format(fingerprint, after))) after
    else if (attempts > 1) add(fingerprint, runs, attempts - 1)
    else throw new IOException(s"Cannot replace ${file(fingerprint)}: it exists again after $MaxAttempts deletions")
  }

  /**
   * Fingerprints of the newest entries, among the first files that the directory lists. Deletes files that applications
   * left behind when they were killed.
   */
  def newest(max: Int): Seq[String] =
    if (!fileSystem.exists(directory)) Nil
    else {
      val listed = fileSystem.listStatusIterator(directory)
      val (entries, others) = Iterator
        .continually(listed)
        .takeWhile(_.hasNext)
        .map(_.next())
        .filter(_.isFile)
        .take(MaxListed)
        .toSeq
        .partition(status => FileName.pattern.matcher(status.getPath.getName).matches)
      others.filter(isLeftBehind).foreach(status => Try(fileSystem.delete(status.getPath, false)))
      entries
        .sortBy(-_.getModificationTime)
        .take(max)
        .map(_.getPath.getName.stripSuffix(Suffix))
    }

  def close(): Unit = opened.foreach(_.close())

  private def file(fingerprint: String) = new Path(directory, fingerprint + Suffix)

  /** A file system instance that no session shares, so that it can be closed. It writes no checksum files. */
  private def fileSystem: FileSystem = opened.getOrElse {
    val instance = FileSystem.newInstance(directory.toUri, conf)
    instance.setWriteChecksum(false)
    instance.setVerifyChecksum(false)
    opened = Some(instance)
    instance
  }

  private def textOf(fingerprint: String): Option[String] = {
    val path = file(fingerprint)
    try {
      val in = fileSystem.open(path)
      val bytes = new Array[Byte](MaxBytes + 1)
      try Some(new String(bytes, 0, IOUtils.read(in, bytes), UTF_8))
      finally in.close()
    } catch {
      case _: FileNotFoundException => None
    }
  }

  /**
   * Readers see the old file, no file or the new file, because some file systems cannot rename onto a file. Returns
   * false if another application has put its file there in the meantime.
   */
  private def replace(path: Path, text: String): Boolean = {
    val temporary = new Path(directory, s".${path.getName}.${UUID.randomUUID()}")
    var isRenamed = false
    try {
      val out = fileSystem.create(temporary, false)
      try out.write(text.getBytes(UTF_8))
      finally out.close()
      def rename() = Try(fileSystem.rename(temporary, path))
      isRenamed = rename().getOrElse(false)
      if (!isRenamed) {
        fileSystem.delete(path, false)
        val again = rename()
        isRenamed = again.getOrElse(false)
        if (!isRenamed && !fileSystem.exists(path))
          throw new IOException(s"Cannot rename $temporary to $path", again.failed.toOption.orNull)
      }
      isRenamed
    } finally if (!isRenamed) Try(fileSystem.delete(temporary, false))
  }
}

private[history] object HistoryFiles {
  private val log = LoggerFactory.getLogger(classOf[History].getName)
  private val json = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
  private val Suffix = ".json"
  private val FileName = "[0-9a-f]{32}\\.json".r

  /** Names that [[HistoryFiles.replace]] gives to a file until it is complete. */
  private val TemporaryName = "\\.[0-9a-f]{32}\\.json\\.[0-9a-f-]{36}".r
  private val LongestWriteMillis = TimeUnit.DAYS.toMillis(1)
  private val MaxAttempts = 5
  private val MaxBytes = 1 << 16
  private val MaxListed = 10000

  /** Maximum number of stages of a recorded query, so that a file with all recent runs is not too long. */
  private val MaxStages = 150
  private val Format = "apportion-history-2"

  /** The first format, with one run and without literals. */
  private val FirstFormat = "apportion-history-1"

  private def isLeftBehind(status: FileStatus): Boolean =
    TemporaryName.pattern.matcher(status.getPath.getName).matches &&
      System.currentTimeMillis() - status.getModificationTime > LongestWriteMillis

  private def format(fingerprint: String, runs: Runs): String = {
    val root = json.createObjectNode.put("format", Format).put("fingerprint", fingerprint)
    val nodes = root.putArray("runs")
    runs.recent.foreach { run =>
      val node = nodes.addObject
        .put("literals", run.literals)
        .put("stored", run.stored)
        .put("leafBytes", run.leafBytes)
        .put("at", run.at)
      for (stage <- run.stage)
        node
          .putObject("stage")
          .put("stored", stage.stored)
          .put("tasks", stage.tasks)
          .put("memory", stage.memory)
          .put("spilled", stage.spilled)
          .put("failures", stage.failures)
          .put("helps", stage.helps)
          .put("millis", stage.millis)
          .put("written", stage.written)
          .put("rows", stage.rows)
      run.query.filter(_.stages.size <= MaxStages).foreach(writeQuery(node.putObject("query"), _))
    }
    json.writeValueAsString(root) + "\n"
  }

  /** A query has many stages, so each stage is a short list of numbers. */
  private def writeQuery(node: ObjectNode, cost: QueryCost): Unit = {
    val stages = node.put("tail", cost.tail).putArray("stages")
    cost.stages.foreach { stage =>
      val row = stages.addArray().add(stage.tasks).add(stage.millis).add(stage.longest).add(stage.delay)
      stage.after.foreach(row.add(_: Int))
    }
  }

  private def parse(text: String, fingerprint: String): Either[String, Runs] = for {
    node <- Try(json.readTree(text)).toOption.filter(_.isObject).toRight("it is not a JSON object")
    format = node.path("format").asText
    _ <- Either.cond(format == Format || format == FirstFormat, (), s"its format is not $Format")
    _ <- Either.cond(node.path("fingerprint").asText == fingerprint, (), "its fingerprint is that of another plan")
    runs <-
      if (format == FirstFormat) parseRun(node).map(Seq(_))
      else if (!node.path("runs").isArray) Left("it has no runs")
      else {
        val (problems, runs) = node.path("runs").elements.asScala.toSeq.map(parseRun).partitionMap(identity)
        problems.headOption.toLeft(runs)
      }
  } yield Runs.of(runs)

  private def parseRun(node: JsonNode): Either[String, Run] = for {
    stored <- number(node, "stored")
    leafBytes <- number(node, "leafBytes")
    stage <- if (node.has("stage")) parseStage(node.path("stage")).map(Some(_)) else Right(None)
    query <- if (node.has("query")) parseQuery(node.path("query")).map(Some(_)) else Right(None)
  } yield Run(
    node.path("literals").asText(""),
    stored,
    leafBytes,
    node.path("at").asLong(0),
    stage,
    query
  )

  private def parseStage(node: JsonNode): Either[String, StageRun] = for {
    stored <- number(node, "stored")
    tasks <- number(node, "tasks", Int.MaxValue)
    memory <- number(node, "memory")
    spilled <- number(node, "spilled")
    failures <- number(node, "failures", Int.MaxValue)
    millis <- number(node, "millis")
    helps = node.path("helps").asBoolean(true)
    // Entries of version 0.1 do not have these numbers.
    written = node.path("written").asLong(0)
    rows = node.path("rows").asLong(0)
  } yield StageRun(stored, tasks.toInt, memory, spilled, failures.toInt, helps, millis, written, rows)

  private def parseQuery(node: JsonNode): Either[String, QueryCost] = for {
    tail <- number(node, "tail")
    rows = node.path("stages").elements.asScala.map(_.elements.asScala.toSeq).toSeq
    stages = rows.zipWithIndex.map { case (row, place) => stageCost(row, place) }
    _ <- Either.cond(stages.nonEmpty && stages.forall(_.isDefined), (), "its 'stages' are not lists of numbers")
  } yield QueryCost(stages.flatten, tail)

  private def stageCost(row: Seq[JsonNode], place: Int): Option[StageCost] =
    if (!row.forall(n => n.isIntegralNumber && n.canConvertToLong && n.asLong >= 0)) None
    else
      row.map(_.asLong) match {
        case Seq(tasks, millis, longest, delay, after @ _*)
            if tasks >= 1 && tasks <= Int.MaxValue && after.forall(_ < place) =>
          Some(StageCost(tasks.toInt, millis, longest, delay, after.map(_.toInt)))
        case _ => None
      }

  private def number(node: JsonNode, name: String, most: Long = Long.MaxValue): Either[String, Long] = {
    val value = node.path(name)
    if (value.isIntegralNumber && value.canConvertToLong && value.asLong >= 0 && value.asLong <= most)
      Right(value.asLong)
    else {
      val actual = if (value.isMissingNode) "missing" else value.toString
      Left(s"its '$name' must be a whole number from 0 to $most, but is $actual")
    }
  }
}

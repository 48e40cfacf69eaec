package io.apportion.history

import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.util.{Failure, Success, Try}

import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.sql.SparkSession
import org.slf4j.LoggerFactory

/**
 * What exchanges produced in earlier runs, by the fingerprints of their plans: a file for each in a directory. What cannot be read or
 * is not ours is named in the log once, and as if it were not there.
 */
private[apportion] final class History private (directory: Path, hadoopConf: Configuration) {
  import History._

  private val known = new ConcurrentHashMap[String, Option[Output]]

  /** What could not be written, and is tried again. */
  private val unwritten = ConcurrentHashMap.newKeySet[String]
  @volatile private var failedAt = Option.empty[Long]

  /** What the exchange with that fingerprint produced last, as far as is known since this application began. */
  def find(fingerprint: String): Option[Output] = {
    if (known.size > MostKnown) {
      known.clear()
      unwritten.clear()
    }
    Option(known.get(fingerprint)).getOrElse {
      if (isTried) {
        val found = read(fingerprint)
        // Another query may have remembered it meanwhile.
        Option(known.putIfAbsent(fingerprint, found)).getOrElse(found)
      } else None
    }
  }

  /** The same, scaled to what the plan reads now; None if the data has become another. */
  def predict(fingerprint: String, leafBytes: Long): Option[Output] = for {
    last <- find(fingerprint)
    growth <- last.growth(leafBytes).orElse {
      known.put(fingerprint, None)
      log.warn(
        s"${file(fingerprint)} is stale: its query read ${last.leafBytes} bytes then and reads $leafBytes now. It is left out."
      )
      None
    }
  } yield Output((last.stored * growth).toLong, (last.expanded * growth).toLong, leafBytes)

  /** Keeps what an exchange produced, if that is news. */
  def remember(fingerprint: String, output: Output): Unit =
    if (unwritten.contains(fingerprint) || !find(fingerprint).exists(_.isNear(output))) {
      known.put(fingerprint, Some(output))
      unwritten.add(fingerprint)
      if (isTried)
        Try(write(fingerprint, output)) match {
          case Success(_)       => unwritten.remove(fingerprint)
          case Failure(failure) => failed("write", failure)
        }
    }

  private def file(fingerprint: String) = new Path(directory, s"$fingerprint.json")

  /** Of its own, as it writes no files of checksums beside those of the history. */
  private lazy val fileSystem: FileSystem = {
    val own = FileSystem.newInstance(directory.toUri, hadoopConf)
    own.setWriteChecksum(false)
    own.setVerifyChecksum(false)
    own
  }

  private def read(fingerprint: String): Option[Output] = Try {
    val path = file(fingerprint)
    Option.when(fileSystem.exists(path)) {
      val in = fileSystem.open(path)
      val bytes = new Array[Byte](MostBytes + 1)
      val text =
        try new String(bytes, 0, IOUtils.read(in, bytes), UTF_8)
        finally in.close()
      parse(text, fingerprint)
    }
  } match {
    case Success(None)                => None
    case Success(Some(Right(found)))  => Some(found)
    case Success(Some(Left(problem))) =>
      log.warn(s"${file(fingerprint)} is left out: $problem")
      None
    case Failure(failure) =>
      failed("read", failure)
      None
  }

  private def write(fingerprint: String, output: Output): Unit = {
    val out = fileSystem.create(file(fingerprint), true)
    try out.write(format(fingerprint, output).getBytes(UTF_8))
    finally out.close()
  }

  /** A file system that does not answer would keep each query waiting: it is left alone for a while. */
  private def isTried: Boolean = failedAt.forall(System.nanoTime() - _ > NanosWithoutTrying)

  /** Nothing is said of further files of a directory that cannot be used. */
  private def failed(what: String, failure: Throwable): Unit = {
    failedAt = Some(System.nanoTime())
    if (named.add(s"$what $directory")) log.warn(s"Cannot $what the history in $directory: $failure")
  }
}

private[apportion] object History {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val json = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
  private val MostKnown = 10000
  private val MostBytes = 4096
  private val Format = "apportion-history-1"

  private val NanosWithoutTrying = TimeUnit.MINUTES.toNanos(1)

  private val named = ConcurrentHashMap.newKeySet[String]
  private val byDirectory = new ConcurrentHashMap[Path, History]

  /** The history in a directory, which all sessions of the application share. */
  def in(path: String, session: SparkSession): History = {
    val hadoopConf = session.sessionState.newHadoopConf()
    byDirectory.computeIfAbsent(new Path(path), new History(_, hadoopConf))
  }

  /** Forgets what has been read, as if another application began. */
  private[history] def forget(): Unit = byDirectory.clear()

  private def format(fingerprint: String, output: Output): String = json.writeValueAsString(
    json.createObjectNode
      .put("format", Format)
      .put("fingerprint", fingerprint)
      .put("stored", output.stored)
      .put("expanded", output.expanded)
      .put("leafBytes", output.leafBytes)
  ) + "\n"

  private def parse(text: String, fingerprint: String): Either[String, Output] = {
    def bytes(node: JsonNode, name: String): Either[String, Long] = {
      val value = node.path(name)
      if (value.isIntegralNumber && value.canConvertToLong && value.asLong >= 0) Right(value.asLong)
      else Left(s"its '$name' is ${if (value.isMissingNode) "missing" else value}, not a number of bytes")
    }
    for {
      node <- Try(json.readTree(text)).toOption.filter(_.isObject).toRight("it holds no JSON object")
      _ <- Either.cond(node.path("format").asText == Format, (), s"its format is not $Format")
      _ <- Either.cond(node.path("fingerprint").asText == fingerprint, (), "it is about another plan")
      stored <- bytes(node, "stored")
      expanded <- bytes(node, "expanded")
      leafBytes <- bytes(node, "leafBytes")
    } yield Output(stored, expanded, leafBytes)
  }
}

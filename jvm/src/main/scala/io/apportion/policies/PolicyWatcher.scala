package io.apportion.policies

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}

import scala.util.Try
import scala.util.control.NonFatal

import io.apportion.history.ApplicationUser
import io.apportion.settings.QuerySettings
import org.apache.commons.io.IOUtils
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}
import org.apache.spark.sql.SparkSession

/**
 * Reads the policy file of an application when it starts, and again when the file changes.
 *
 * One thread reads the file, as the application's user. Queries use the rules in memory. Only the first queries wait
 * until the file is read, and only for a limited time, so that a file system that hangs stops no query.
 */
private[policies] final class PolicyWatcher(path: Path, conf: Configuration, times: PolicyTimes) {
  import PolicyWatcher._

  @volatile private var current = Option.empty[RuleIndex]
  @volatile private var lastAnswer = System.nanoTime()
  @volatile private var isLate = false
  @volatile private var looks = 0L
  private val firstRead = new CountDownLatch(1)
  private val closed = new CountDownLatch(1)

  // Only the thread uses these.
  private var seen = Option.empty[Version]
  private var problem = Option.empty[String]

  private val thread = new Thread(() => ApplicationUser.run(() => watch()), "apportion-policies")
  thread.setDaemon(true)
  thread.start()

  /** The rules in force. `None` if there are none yet. */
  def rules: Option[RuleIndex] = {
    if (!isLate && firstRead.getCount > 0) firstRead.await(times.firstRead, TimeUnit.NANOSECONDS)
    val age = System.nanoTime() - lastAnswer
    if (!isLate && age > times.late) {
      isLate = true
      PolicyFile.log.warn(s"No answer about $path within ${TimeUnit.NANOSECONDS.toSeconds(age)} seconds. $remaining")
    }
    current
  }

  /** Closes the watcher, and waits until it no longer reads the file. For tests. */
  private[policies] def end(): Unit = {
    close()
    thread.join()
  }

  /** Waits until a look at the file that begins after this call has ended. For tests. */
  private[policies] def awaitLook(): Unit = {
    val before = looks
    while (looks < before + 2) Thread.sleep(1)
  }

  def close(): Unit = {
    closed.countDown()
    thread.interrupt()
  }

  private def watch(): Unit = {
    // No session shares this instance, so that it can be closed.
    lazy val fileSystem = FileSystem.newInstance(path.toUri, conf)
    def isOpen = closed.getCount > 0
    try
      while (isOpen) {
        try readIfChanged(fileSystem)
        catch {
          case failure @ (NonFatal(_) | _: LinkageError) => if (isOpen) warn(failure.toString)
        }
        lastAnswer = System.nanoTime()
        isLate = false
        looks += 1
        firstRead.countDown()
        closed.await(times.poll, TimeUnit.NANOSECONDS)
      }
    catch { case _: InterruptedException => }
    finally Try(fileSystem.close())
  }

  private def readIfChanged(fileSystem: FileSystem): Unit = {
    val status = fileSystem.getFileStatus(path)
    val version = Version(status.getModificationTime, status.getLen)
    // Times of modification may be as coarse as a second, so a file that was just written may change unnoticed.
    val isSettled = System.currentTimeMillis() - version.modified > SettleMillis
    if (!seen.contains(version)) {
      if (version.length > MaxBytes)
        throw new IOException(s"it has ${version.length} bytes. Allowed: at most $MaxBytes")
      val in = fileSystem.open(path)
      val text =
        try new String(IOUtils.toByteArray(in), UTF_8)
        finally in.close()
      PolicyFile.parse(text, path.getName.endsWith(".json")) match {
        case Left(reason) => warn(reason)
        case Right(file)  => use(file)
      }
      seen = Some(version).filter(_ => isSettled)
    }
  }

  private def use(file: PolicyFile): Unit = {
    current = Some(new RuleIndex(file.rules)).filter(_.rules.nonEmpty)
    if (file.problems.isEmpty) problem = None
    else {
      val shown = file.problems.take(MaxShown)
      val more = if (file.problems.size > shown.size) s"; and ${file.problems.size - shown.size} more" else ""
      once(s"Policy file $path: ${shown.mkString("; ")}$more. These rules are left out.")
    }
  }

  private def warn(reason: String): Unit = once(s"Cannot use the policy file $path: $reason. $remaining")

  /** Logs a problem, but not again at each look at the file. */
  private def once(text: String): Unit = {
    if (!problem.contains(text)) PolicyFile.log.warn(text)
    problem = Some(text)
  }

  private def remaining: String = current match {
    case None        => "No rules are in force."
    case Some(index) => s"The ${index.rules.size} rules that were read before stay in force."
  }
}

/**
 * Times of a [[PolicyWatcher]], in nanoseconds.
 *
 * @param firstRead time that the first queries wait until the file is read
 * @param poll      time between two looks at the file
 * @param late      time without an answer of the file system after which the log has a warning
 */
private[policies] final case class PolicyTimes(
    firstRead: Long = TimeUnit.SECONDS.toNanos(10),
    poll: Long = TimeUnit.SECONDS.toNanos(5),
    late: Long = TimeUnit.SECONDS.toNanos(10)
)

private[policies] object PolicyWatcher {
  private val MaxBytes = 16 << 20
  private val MaxShown = 10
  private val SettleMillis = 3000L

  private final case class Version(modified: Long, length: Long)

  private val byApplication = new ConcurrentHashMap[SparkContext, PolicyWatcher]

  /** The rules of a session's application. `None` if it has no policy file, or no rules are in force. */
  def rulesOf(session: SparkSession): Option[RuleIndex] =
    QuerySettings.Policies.get(session.sessionState.conf).flatMap(of(session.sparkContext, _)).flatMap(_.rules)

  /** The watcher of an application. The first call creates it. */
  private def of(sparkContext: SparkContext, path: String): Option[PolicyWatcher] =
    if (sparkContext.isStopped) None
    else Option(byApplication.computeIfAbsent(sparkContext, open(_, path, PolicyTimes())))

  /** The watcher of an application that has one. For tests. */
  private[policies] def existing(sparkContext: SparkContext): Option[PolicyWatcher] =
    Option(byApplication.get(sparkContext))

  /** Replaces the watcher of an application, as a new application does. */
  private[policies] def reopen(sparkContext: SparkContext, path: String, times: PolicyTimes): PolicyWatcher = {
    existing(sparkContext).foreach(_.close())
    val watcher = open(sparkContext, path, times)
    byApplication.put(sparkContext, watcher)
    watcher
  }

  private def open(sparkContext: SparkContext, path: String, times: PolicyTimes): PolicyWatcher = {
    val watcher = new PolicyWatcher(new Path(path), new Configuration(sparkContext.hadoopConfiguration), times)
    sparkContext.addSparkListener(new SparkListener {
      override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = {
        byApplication.remove(sparkContext, watcher)
        watcher.close()
      }
    })
    watcher
  }
}

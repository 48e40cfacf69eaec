package io.apportion.history

import java.util.concurrent._

import scala.collection.mutable
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import io.apportion.util.BoundedMap
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkContext
import org.apache.spark.scheduler.{SparkListener, SparkListenerApplicationEnd}
import org.apache.spark.sql.SparkSession
import org.slf4j.LoggerFactory

/**
 * What earlier runs of queries showed: sizes of broadcast tables, needs of stages and costs of queries. The history has
 * one entry ([[Runs]]) for each table, stage or query.
 *
 * Queries use the entries in memory. One thread reads and writes the files. The queries of an application wait at most
 * `timeouts.planning` in total for this thread. That is enough for a fast file system, and limits the delay by a slow
 * one.
 */
private[apportion] final class History private (files: HistoryFiles, timeouts: HistoryTimeouts) {
  import History._

  // This object's lock guards all these fields. No file is used under the lock.
  private val known = new BoundedMap[String, Runs](MaxKnown)
  private val reading = mutable.Map.empty[String, Future[_]]
  private val unwritten = new BoundedMap[String, Runs](MaxKnown)
  private val recorded = new BoundedMap[Int, Unit](MaxKnown)
  private val stale = new BoundedMap[String, Unit](MaxKnown)
  private var isWriting = false
  private var isPrefetched = false
  private var isClosed = false
  private var waitLeft = timeouts.planning
  private var running = Option.empty[(Future[_], Long)]
  private var pausedUntil = Option.empty[Long]
  private var pause = timeouts.pause

  private val thread = {
    val executor = new ThreadPoolExecutor(
      1,
      1,
      IdleSeconds,
      TimeUnit.SECONDS,
      new LinkedBlockingQueue[Runnable](MaxQueued),
      (body: Runnable) => daemon(body)
    )
    executor.allowCoreThreadTimeOut(true)
    executor
  }

  /**
   * Largest recorded size in an entry, scaled to the bytes that the plan reads now. Only runs with the same literals
   * count.
   */
  def predict(fingerprint: PlanFingerprint, leafBytes: Long): Option[Long] = {
    val known = runs(fingerprint.plan)
    val predicted = known.predict(fingerprint.literals, leafBytes)
    for (last <- known.alike(fingerprint.literals).lastOption if predicted.isEmpty && stale.add(fingerprint.plan, ()))
      log.warn(
        s"History entry ${fingerprint.plan} in $files is ignored, as its runs are stale: " +
          s"the last run read ${last.leafBytes} bytes, and the query reads $leafBytes bytes now"
      )
    predicted
  }

  /** The newest run in an entry. */
  def last(fingerprint: String): Option[Run] = runs(fingerprint).recent.lastOption

  /** Whether this is the first call for the broadcast with this id. Spark plans often, but each table is added once. */
  def isNew(broadcast: Int): Boolean = recorded.add(broadcast, ())

  /** Adds a run to an entry: in memory immediately, and in the file later. */
  def add(fingerprint: String, run: Run): Unit = synchronized {
    val before = runsOf(known, fingerprint)
    val after = before.add(run)
    if (after ne before) {
      known.put(fingerprint, after)
      unwritten.put(fingerprint, runsOf(unwritten, fingerprint).add(run))
    }
    startWriting()
  }

  /** The recent runs in an entry. */
  def runs(fingerprint: String): Runs = {
    val read = synchronized {
      if (known.contains(fingerprint)) None
      else reading.get(fingerprint).orElse(startReading(fingerprint)).map(_ -> waitLeft)
    }
    for ((answer, maxWait) <- read if maxWait > 0) {
      val start = System.nanoTime()
      try answer.get(maxWait, TimeUnit.NANOSECONDS)
      catch { case _: TimeoutException | _: CancellationException | _: ExecutionException => }
      finally synchronized(waitLeft -= System.nanoTime() - start)
    }
    synchronized(runsOf(known, fingerprint))
  }

  private def startReading(fingerprint: String): Option[Future[_]] = {
    val answer = submit("read")(read(fingerprint))
    answer.foreach(reading.put(fingerprint, _))
    if (!isPrefetched) {
      isPrefetched = true
      submit("read")(prefetch(files.newest(MaxPrefetched)))
    }
    answer
  }

  private def read(fingerprint: String): Unit = {
    val runs = files.read(fingerprint)
    synchronized(known.put(fingerprint, runs.add(runsOf(known, fingerprint))))
  }

  /**
   * Reads entries that later queries may need. Each is a separate task, so that reads for a query can come in between.
   */
  private def prefetch(fingerprints: Seq[String]): Unit = {
    val unknown = synchronized(fingerprints.dropWhile(known.contains))
    unknown.headOption.foreach { first =>
      read(first)
      submit("read")(prefetch(unknown.tail))
    }
  }

  private def startWriting(): Unit =
    if (!isWriting && !unwritten.isEmpty) isWriting = submit("write") {
      synchronized { isWriting = false }
      writeOne()
      synchronized(startWriting())
    }.isDefined

  /** Writes the entry that has waited longest; returns false if none waits. */
  private def writeOne(): Boolean = {
    val next = synchronized(unwritten.removeEldest())
    next.foreach { case (fingerprint, runs) =>
      try {
        val merged = files.add(fingerprint, runs)
        synchronized(known.put(fingerprint, merged.add(runsOf(known, fingerprint))))
      } catch {
        case failure: Throwable =>
          synchronized(unwritten.put(fingerprint, runs.add(runsOf(unwritten, fingerprint))))
          throw failure
      }
    }
    next.isDefined
  }

  /** Submits work with files to the thread; returns `None` if the thread accepts no work now. */
  private def submit(action: String)(body: => Unit): Option[Future[_]] = synchronized {
    giveUpIfSlow()
    if (isClosed || isPaused) None
    else {
      lazy val task: FutureTask[Unit] = new FutureTask[Unit](() => {
        synchronized { running = Some(task -> System.nanoTime()) }
        val result =
          try { body; Success(()) }
          catch { case failure @ (NonFatal(_) | _: LinkageError | _: InterruptedException) => Failure(failure) }
        synchronized {
          if (running.exists(_._1 eq task)) {
            running = None
            reading.filterInPlace((_, read) => read ne task)
            result match {
              case Success(_)       => pause = timeouts.pause
              case Failure(failure) => suspend(action, failure.toString)
            }
          }
        }
      })
      Try(thread.execute(task)).toOption.map(_ => task)
    }
  }

  /** Gives up a file that takes too long, and all work that waits behind it. */
  private def giveUpIfSlow(): Unit =
    for ((task, start) <- running if System.nanoTime() - start > timeouts.file) {
      running = None
      task.cancel(true)
      suspend("use", s"no answer within ${TimeUnit.NANOSECONDS.toSeconds(timeouts.file)} seconds")
    }

  /** Pauses the use of files. Pauses double until an access succeeds. Only the first failure of an action is logged. */
  private def suspend(action: String, reason: String): Unit = {
    thread.getQueue.clear()
    reading.clear()
    isWriting = false
    pausedUntil = Some(System.nanoTime() + pause)
    pause = (pause * 2).min(timeouts.longestPause)
    if (!isClosed && named.add(s"$action $files", ())) log.warn(s"Cannot $action the history in $files: $reason")
  }

  /** Writes the remaining entries, for at most `timeouts.end`, and closes the file system. */
  private[history] def close(): Unit = {
    synchronized {
      giveUpIfSlow()
      if (!isClosed) {
        isClosed = true
        Try(thread.execute { () =>
          try while (!isPaused && writeOne()) {}
          catch { case NonFatal(_) | _: InterruptedException => }
          finally Try(files.close())
        })
        thread.shutdown()
      }
    }
    if (!thread.awaitTermination(timeouts.end, TimeUnit.NANOSECONDS)) {
      thread.shutdownNow()
      daemon(() => Try(files.close())).start()
    }
  }

  private def isPaused: Boolean = synchronized(pausedUntil.exists(System.nanoTime() - _ < 0))
}

/**
 * Time limits of a history, in nanoseconds.
 *
 * @param planning     total time that all queries of an application wait for files
 * @param file         time after which a file is given up
 * @param pause        pause after a failure; it doubles with each further failure
 * @param longestPause maximum pause
 * @param end          time that the end of the application waits for files to be written
 */
private[history] final case class HistoryTimeouts(
    planning: Long = TimeUnit.MILLISECONDS.toNanos(200),
    file: Long = TimeUnit.SECONDS.toNanos(30),
    pause: Long = TimeUnit.MINUTES.toNanos(1),
    longestPause: Long = TimeUnit.HOURS.toNanos(1),
    end: Long = TimeUnit.SECONDS.toNanos(5)
)

private[apportion] object History {
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val MaxKnown = 10000
  private val MaxPrefetched = 1000
  private val MaxQueued = 4000
  private val IdleSeconds = 10L

  private val named = new BoundedMap[String, Unit](MaxKnown)
  private val byApplication = new ConcurrentHashMap[SparkContext, History]

  /** The history of a session's application, if it keeps one. */
  def of(session: SparkSession): Option[History] =
    HistorySettings.HistoryPath.get(session.sessionState.conf).flatMap(of(session.sparkContext, _))

  /** The history of an application. The first call opens it, with the application's user and configuration. */
  def of(sparkContext: SparkContext, path: String): Option[History] =
    if (sparkContext.isStopped) None
    else Option(byApplication.computeIfAbsent(sparkContext, open(_, path, HistoryTimeouts())))

  /** Closes the history and opens one in this directory, as a new application does. */
  private[history] def reopen(sparkContext: SparkContext, path: String, timeouts: HistoryTimeouts): Unit = {
    Option(byApplication.remove(sparkContext)).foreach(_.close())
    byApplication.put(sparkContext, open(sparkContext, path, timeouts))
  }

  private def open(sparkContext: SparkContext, path: String, timeouts: HistoryTimeouts): History = {
    val conf = new Configuration(sparkContext.hadoopConfiguration)
    val history = new History(new HistoryFiles(new Path(path), conf), timeouts)
    sparkContext.addSparkListener(new SparkListener {
      override def onApplicationEnd(event: SparkListenerApplicationEnd): Unit = {
        byApplication.remove(sparkContext)
        history.close()
      }
    })
    history
  }

  /** A thread that runs as the application's user, whichever query starts it. */
  private def daemon(body: Runnable): Thread = {
    val thread = new Thread(() => ApplicationUser.run(body), "apportion-history")
    thread.setDaemon(true)
    thread
  }

  private def runsOf(map: BoundedMap[String, Runs], fingerprint: String): Runs =
    map.get(fingerprint).getOrElse(Runs.none)
}

package org.apache.spark.deploy.history

import java.nio.file.Path

import org.apache.spark.{SecurityManager, SparkConf}
import org.scalatest.Assertions.assert
import org.scalatest.concurrent.Eventually._
import org.scalatest.time.{Minute, Span}

/** A history server over the event logs of a directory; in Spark's namespace because its parts are private to it. */
object HistoryServerOf {

  /** Gives the server's address to the body. */
  def logs(directory: Path, settings: (String, String)*)(body: String => Unit): Unit = {
    val conf = new SparkConf(false).set("spark.history.fs.logDirectory", directory.toUri.toString).setAll(settings)
    val provider = new FsHistoryProvider(conf)
    val server = new HistoryServer(conf, provider, new SecurityManager(conf), 0)
    try {
      server.initialize()
      server.bind()
      provider.checkForLogs()
      // It reads logs in threads of its own.
      eventually(timeout(Span(1, Minute)))(assert(provider.getListing().hasNext))
      body(s"http://localhost:${server.boundPort}")
    } finally server.stop()
  }
}

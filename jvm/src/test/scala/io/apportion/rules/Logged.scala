package io.apportion.rules

import java.util.concurrent.CopyOnWriteArrayList

import scala.jdk.CollectionConverters._

import org.apache.logging.log4j.LogManager
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.Property
import org.apache.logging.log4j.core.{LogEvent, Logger}

object Logged {

  /** What a class logs meanwhile. */
  def by(name: String)(body: => Unit): Seq[String] = {
    val lines = new CopyOnWriteArrayList[String]
    val appender = new AbstractAppender(s"lines of $name", null, null, true, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = lines.add(event.getMessage.getFormattedMessage)
    }
    val logger = LogManager.getLogger(name).asInstanceOf[Logger]
    appender.start()
    logger.addAppender(appender)
    try body
    finally logger.removeAppender(appender)
    lines.asScala.toSeq
  }
}

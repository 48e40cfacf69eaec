package io.apportion.writes

import java.util.concurrent.ConcurrentHashMap

import io.apportion.decision.ranges.Bytes
import io.apportion.settings.SettingEntry
import io.apportion.writes.statements.WrittenTable
import org.apache.spark.sql.internal.SQLConf
import org.slf4j.LoggerFactory

/**
 * Size that the files of a statement should have, in bytes.
 *
 * @param name the setting or the table property that has the size, for people
 */
private[writes] final case class TargetFileSize(bytes: Long, name: String) {
  def text: String = s"$name ${Bytes.text(bytes)}"
}

private[writes] object TargetFileSize {
  private val setting = WriteSettings.WriteTargetFileSize
  private val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))
  private val logged = ConcurrentHashMap.newKeySet[String]()
  private val MaxLogged = 1000

  /** The setting of the session or of a policy rule, else the property of the table. */
  def of(table: => WrittenTable, conf: SQLConf): Option[TargetFileSize] =
    setting.get(conf).map(TargetFileSize(_, setting.name)).orElse(ofTable(table))

  private def ofTable(table: WrittenTable): Option[TargetFileSize] = {
    for (key <- table.properties.keys if key.startsWith(SettingEntry.Prefix) && key != setting.key)
      warn(s"Table ${table.name}: property $key is ignored. Known: ${setting.key}.")
    table.properties.get(setting.key).flatMap { value =>
      setting.parse(value) match {
        case Right(size)   => size.map(TargetFileSize(_, s"table property ${setting.name}"))
        case Left(problem) =>
          warn(s"Table ${table.name}: property ${setting.key} is $problem. It is ignored.")
          None
      }
    }
  }

  private def warn(problem: String): Unit = if (logged.size < MaxLogged && logged.add(problem)) log.warn(problem)
}

package io.apportion.history

import java.util.regex.Pattern

import scala.collection.mutable

/**
 * Path of files that a query reads, without the parts that change from run to run.
 *
 * A part is left out only if its form says that it is no name of a table: the value of `name=value`, a date, a UUID, the seconds or
 * milliseconds of an epoch, a numbered run. Other digits stay.
 *
 * @param name   the path with a `*` for each part that was left out
 * @param values the parts that were left out
 */
private[history] final case class SourcePath(name: String, values: Seq[String])

private[history] object SourcePath {
  private val Partition = Pattern.compile("([^=]+)=.*")
  private val Year = Pattern.compile("(?:19|20)\\d\\d(?:-(?:0[1-9]|1[0-2]))?")
  private val MonthDayOrHour = Pattern.compile("\\d{1,2}")
  private val Epoch = Pattern.compile("\\d{10}|\\d{13}")
  private val NumberedRun = Pattern.compile("(?i)(?:run|batch|job|attempt|snapshot)[-_]?\\d+")
  private val Date = Pattern.compile(
    "(?<!\\d)(?:19|20)\\d\\d([-_.]?)(?:0[1-9]|1[0-2])\\1(?:0[1-9]|[12]\\d|3[01])" +
      "(?:[T_ -]?\\d\\d(?:[:_-]?\\d\\d){0,2}(?:\\.\\d+)?)?(?:Z|[+-]\\d\\d:?\\d\\d)?(?!\\d)"
  )
  private val Uuid = Pattern.compile("(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

  /** Unity Catalog and others name the directories of different tables by UUIDs below these. */
  private val FoldersOfUuids = Set("tables", "schemas", "catalogs", "metastores", "volumes")

  def of(path: String): SourcePath = {
    val values = mutable.ListBuffer.empty[String]
    var previous = ""
    var afterDate = false
    val segments = path.split("/", -1).map { segment =>
      def without(name: String): String = {
        values += segment
        name
      }
      def matches(pattern: Pattern) = pattern.matcher(segment).matches
      val partition = Partition.matcher(segment)
      val isDate = matches(Year) || matches(Date) || (afterDate && matches(MonthDayOrHour))
      val name =
        if (partition.matches) without(s"${partition.group(1)}=*")
        else if (isDate || matches(Epoch) || matches(NumberedRun)) without("*")
        else {
          val undated = Date.matcher(segment).replaceAll("*")
          val general = if (FoldersOfUuids(previous)) undated else Uuid.matcher(undated).replaceAll("*")
          if (general == segment) segment else without(general)
        }
      previous = segment
      afterDate = isDate
      name
    }
    SourcePath(segments.mkString("/"), values.toList)
  }

  /** Of several paths together: how many directories of a kind there are does not count as part of the name. */
  def of(paths: Seq[String]): SourcePath = {
    val each = paths.map(of)
    SourcePath(each.map(_.name).distinct.sorted.mkString(" "), each.flatMap(_.values).sorted)
  }
}

package io.apportion.history

import java.util.regex.Pattern

import scala.collection.mutable

/**
 * Path of the files that a query reads, without the parts that change from run to run.
 *
 * A part is left out only if its form shows that it is not the name of a table: the value in `name=value`, a date, a
 * UUID, an epoch in seconds or milliseconds, or a numbered run. Other digits stay.
 *
 * @param name   the path, with a `*` for each part that is left out
 * @param values the parts that are left out
 */
private[apportion] final case class SourcePath(name: String, values: Seq[String])

private[apportion] object SourcePath {
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

  /** Directories in which a UUID identifies a table or a volume, for example in Unity Catalog. */
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

  /** Combines several paths. The name is the same for any number of directories that differ only in left-out parts. */
  def of(paths: Seq[String]): SourcePath = {
    val sources = paths.map(of)
    SourcePath(sources.map(_.name).distinct.sorted.mkString(" "), sources.flatMap(_.values).sorted)
  }
}

package io.apportion.scans

import org.apache.spark.sql.types._

/** Estimates how much of a columnar file (Parquet, ORC) a scan reads. */
private[apportion] object ReadColumns {

  /**
   * The share of a file's bytes that belongs to the columns `read`, if the file has the columns `all`.
   *
   * The widths are the default sizes of Spark's types. Strings, arrays and other types of variable width may take
   * nearly all of a file, so the share is 1 if the scan reads one of them.
   */
  def share(read: StructType, all: StructType): Double =
    if (all.defaultSize == 0 || !isFixed(read)) 1 else (read.defaultSize.toDouble / all.defaultSize).min(1)

  private def isFixed(kind: DataType): Boolean = kind match {
    case struct: StructType                                => struct.forall(field => isFixed(field.dataType))
    case _: NumericType | BooleanType | DateType           => true
    case TimestampType | TimestampNTZType                  => true
    case _: DayTimeIntervalType | _: YearMonthIntervalType => true
    case _                                                 => false
  }
}

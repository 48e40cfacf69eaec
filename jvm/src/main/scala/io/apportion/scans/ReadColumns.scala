package io.apportion.scans

import org.apache.spark.sql.types._

/** How much of a columnar file (parquet, orc) the read columns take. */
private[apportion] object ReadColumns {

  /**
   * The share of a file's bytes that columns of these types take, of all that the file has.
   *
   * The widths are the default sizes of Spark's types. Strings, arrays and other types of no fixed width may take nearly all of
   * a file, so that the share is 1 where one of them is read.
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

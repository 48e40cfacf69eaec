package io.apportion.writes.statements

/**
 * Table or path that a statement writes.
 *
 * @param properties       properties of the table; none for a path
 * @param partitionColumns names of the columns whose values make the partitions of the table
 */
private[writes] final case class WrittenTable(
    name: String,
    properties: Map[String, String] = Map.empty,
    partitionColumns: Seq[String] = Nil
)

package io.apportion.writes.statements

/**
 * Table or path that a statement writes.
 *
 * @param properties properties of the table; none for a path
 */
private[writes] final case class WrittenTable(name: String, properties: Map[String, String])

package org.apache.spark.apportion.ui

import scala.xml.{Attribute, Elem, Null, Text, Unparsed}

/** Cells of tables that sort by numbers, and that fit a narrow screen. */
private[ui] object Cell {

  /** On a narrow screen, the cells of a row are below each other, each after the name of its column. */
  val Style: Elem =
    <style>{
      Unparsed(""".apportion-wide { overflow-x: auto; } .apportion-narrow { display: none; }
        |@media (max-width: 46rem) {
        |  .apportion-wide { display: none; } .apportion-narrow { display: block; }
        |  tr:has(td[data-label]), td[data-label] { display: block; } table:has(td[data-label]) thead { display: none; }
        |  td[data-label]::before { content: attr(data-label) ": "; font-weight: bold; }
        |  td[data-label]:empty { display: none; }
        |}""".stripMargin)
    }</style>

  /** A cell that sorts by a number. The script of Spark's tables would sort a text such as "9 MiB" by its letters. */
  def of(value: Long, text: String): Elem = <td sorttable_customkey={value.toString}>{text}</td>

  /** A row whose cells have the names of their columns. */
  def row(columns: Seq[String], cells: Seq[Elem]): Elem =
    <tr>{
      columns.zip(cells).map { case (column, cell) => cell % Attribute(None, "data-label", Text(column), Null) }
    }</tr>
}

package io.apportion

import java.nio.file.{Files, Path, Paths}

import com.fasterxml.jackson.databind.{ObjectMapper, SerializationFeature}
import io.apportion.conf.Settings
import io.apportion.report.DecisionRecord

/** The files that are generated from code; run it to write them. */
object GeneratedFiles {
  final case class GeneratedFile(name: String, content: String) {
    def path: Path = Paths.get(name)
  }

  def all: Seq[GeneratedFile] = Seq(
    GeneratedFile("python/apportion/settings.json", settingsJson),
    GeneratedFile("docs/settings.md", settings),
    GeneratedFile("docs/decisions.md", decisions)
  )

  private def settingsJson: String = {
    val mapper = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT)
    mapper.writeValueAsString(mapper.readTree(PythonBridge.settings())) + "\n"
  }

  private def settings: String = lines(
    "# Settings",
    "",
    "SQL confs: `SET name = value`, `spark.conf.set`, or `--conf` at submit time. `SET -v` shows them too.",
    "",
    table(
      Seq("setting", "default", "allowed", "meaning", "since"),
      Settings.all.map { setting =>
        Seq(
          s"`${setting.key}`",
          setting.default.fold("not set")(value => s"`$value`"),
          setting.allowed.text,
          setting.doc,
          setting.since
        )
      }
    )
  )

  private def decisions: String = lines(
    "# Decisions",
    "",
    "`SELECT * FROM apportion_decisions()` gives the last decisions of the session, oldest first: a row for each group of exchanges",
    "that has to be read with the same ranges, such as both sides of a sort-merge join. In Python, `apportion.decisions(spark)`.",
    "",
    table(
      Seq("column", "type", "holds"),
      DecisionRecord.schema.map(column =>
        Seq(s"`${column.name}`", column.dataType.sql.toLowerCase, column.getComment().mkString)
      )
    ),
    "",
    "`kind` and `clamps`:",
    "",
    "- `formula`: the volume of a task decided.",
    "- `reactive`: the number was raised to use the slots that are there.",
    "- `explicit`: `spark.apportion.parallelism` is set.",
    "- `minimum`, `maximum`: a bound changed the number.",
    "- `subpartitions`: there were fewer subpartitions than tasks asked for.",
    "- `source`: a stage without inputs got the default of sources.",
    "- `unchanged`: the group was left alone, and `reason` says which input forbids a change."
  )

  private def table(header: Seq[String], rows: Seq[Seq[String]]): String =
    (header +: header.map(_ => "---") +: rows).map(_.mkString("| ", " | ", " |")).mkString("\n")

  private def lines(lines: String*): String = lines.mkString("", "\n", "\n")

  def main(args: Array[String]): Unit = all.foreach { file =>
    Option(file.path.getParent).foreach(Files.createDirectories(_))
    Files.writeString(file.path, file.content)
    println(s"wrote ${file.path}")
  }
}

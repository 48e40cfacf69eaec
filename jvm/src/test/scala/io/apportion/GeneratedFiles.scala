package io.apportion

import java.nio.file.{Files, Path, Paths}

import io.apportion.decision.Kind
import io.apportion.report.DecisionRecord
import io.apportion.resources.ResourceHistory
import io.apportion.resources.planned.PlannedSlots
import io.apportion.settings.{RuleNames, Settings}
import com.fasterxml.jackson.databind.{ObjectMapper, SerializationFeature}
import org.apache.spark.sql.types.StructType

/** The files that are generated from code; run it to write them. */
object GeneratedFiles {
  final case class GeneratedFile(name: String, content: String) {
    def path: Path = Paths.get(name)
  }

  def all: Seq[GeneratedFile] = Seq(
    GeneratedFile("python/apportion/settings.json", settingsJson),
    GeneratedFile("docs/settings.md", settings),
    GeneratedFile("docs/decisions.md", decisions),
    GeneratedFile("docs/slots.md", slots)
  )

  private def settingsJson: String = {
    val mapper = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT)
    mapper.writeValueAsString(mapper.readTree(PythonBridge.settings())) + "\n"
  }

  private def settings: String = lines(
    "# Settings",
    "",
    "SQL confs: `SET name = value`, `spark.conf.set`, or `--conf` at submit time. `SET -v` shows them too. For one query there are",
    "[hints](hints.md), or `SET` before it and `RESET` after. In Python they are keywords in snake case:",
    "`spark.apportion.sources.maxParallelism` is `sources_max_parallelism`. Sizes take units (`64MB`), times too (`30s`, `5min`).",
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
    ),
    "",
    "## Rules that can be switched off",
    "",
    s"`${Settings.RulesDisabled.key}` takes these names, between commas. It is meant for debugging, and for a rule that fails:",
    "the log then names the rule. `spark.apportion.enabled=false` switches off all of them.",
    "",
    table(
      Seq("rule", "while it is off"),
      RuleNames.entries.map(rule => Seq(s"`${rule.name}`", rule.withoutIt))
    )
  )

  private def decisions: String = lines(
    "# Decisions",
    "",
    "`SELECT * FROM apportion_decisions()` gives the last decisions of the session, oldest first: a row for each group of exchanges",
    "that has to be read with the same ranges, such as both sides of a sort-merge join, and for each scan of files. In Python,",
    "`apportion.decisions(spark)`.",
    "",
    "The column `reason` reads like this:",
    "",
    "```text",
    "8 tasks: 10.0 MiB at 1.0 MiB a task (session setting) makes 10, nearest power of two 8.",
    "```",
    "",
    "The shuffles hold 10.0 MiB. A task should read 1.0 MiB, which was set in the session. That makes 10 tasks, which is rounded to",
    "8. Limits that changed the number follow, and remarks, as on subpartitions that are too large for one task.",
    "",
    columns(DecisionRecord.schema),
    "",
    "`kind` and `clamps`:",
    "",
    (Kind.all.map(kind => s"- `${kind.name}`: ${kind.doc}.") :+ "- `unchanged`: left alone; `reason` says why.")
      .mkString("\n")
  )

  private def slots: String = lines(
    "# Slots",
    "",
    "[Resources](resources.md) has what these tables are for.",
    "",
    "## apportion_slots",
    "",
    "`SELECT * FROM apportion_slots('SELECT ...')` plans a query and gives a row for each stage, for each group of stages that share",
    "slots, and for the query. A second argument is how many slots to deal. In Python, `apportion.resources.plan(spark, sql, slots)`.",
    "",
    columns(PlannedSlots.schema),
    "",
    "## apportion_resources",
    "",
    "`SELECT * FROM apportion_resources()` gives the last changes of the application's slots, oldest first. In Python,",
    "`apportion.resources.history(spark)`.",
    "",
    columns(ResourceHistory.schema)
  )

  private def columns(schema: StructType): String = table(
    Seq("column", "type", "holds"),
    schema.map(column => Seq(s"`${column.name}`", column.dataType.sql.toLowerCase, column.getComment().mkString))
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

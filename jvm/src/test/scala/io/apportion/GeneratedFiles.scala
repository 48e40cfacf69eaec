package io.apportion

import java.nio.file.{Files, Path, Paths}

import io.apportion.decision.Kind
import io.apportion.report.DecisionTable
import io.apportion.resources.ResourceHistory
import io.apportion.resources.planned.PlannedSlots
import io.apportion.settings.{Allowed, Category, SettingEntry, SettingRegistry, Settings}
import io.apportion.streams.StreamRecord
import com.fasterxml.jackson.databind.{ObjectMapper, SerializationFeature}
import org.apache.spark.sql.types.{ArrayType, DataType, StructType}

/** The files that are generated from code. Run this object to write them. */
object GeneratedFiles {
  final case class GeneratedFile(name: String, content: String) {
    def path: Path = Paths.get(name)
  }

  def all: Seq[GeneratedFile] = Seq(
    GeneratedFile("python/apportion/settings.json", settingsJson),
    GeneratedFile("python/apportion/keywords.py", keywords),
    GeneratedFile("docs/settings.md", settings),
    GeneratedFile("docs/decisions.md", decisions)
  )

  private def settingsJson: String = {
    val mapper = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT)
    mapper.writeValueAsString(mapper.readTree(PythonBridge.settings())) + "\n"
  }

  /** The settings as fields in Python. */
  private def keywords: String = {
    val fields = SettingRegistry.documented.map { setting =>
      s"    ${snakeCase(setting.name)}: ${pythonType(setting)} | None"
    }
    lines(
      "\"\"\"The settings by keyword, for completion and type checks in editors.",
      "",
      "`make generated` writes this file from the settings of the extension.",
      "\"\"\"",
      "",
      "from __future__ import annotations",
      "",
      "import dataclasses",
      "from typing import Literal, TypedDict",
      "",
      "",
      "@dataclasses.dataclass(frozen=True)",
      "class SettingsFields:",
      "    \"\"\"The fields of `apportion.Settings`, which describes the values.\"\"\"",
      "",
      fields.map(_ + " = None").mkString("\n"),
      "",
      "",
      "class SettingsKeywords(TypedDict, total=False):",
      "    \"\"\"The same as keyword arguments.\"\"\"",
      "",
      fields.mkString("\n")
    )
  }

  private def snakeCase(name: String): String =
    name.replace('.', '_').flatMap(c => if (c.isUpper) s"_${c.toLower}" else c.toString)

  private def pythonType(setting: SettingEntry[_]): String = (setting.kind, setting.allowed) match {
    case ("boolean", _)                   => "bool"
    case ("int", _)                       => "int"
    case ("double", _)                    => "float"
    case ("size" | "duration", _)         => "int | str"
    case (_, Allowed.OneOf(choices @ _*)) => choices.mkString("Literal[\"", "\", \"", "\"]")
    case _                                => "str"
  }

  private def settings: String = lines(
    "# Settings",
    "",
    "Settings are Spark SQL confs. Set them with `SET name = value`, with `spark.conf.set`, or with `--conf` when you",
    "submit an application. To change a setting for one query, use a [hint](hints.md), or `SET` before the query and",
    "`RESET` after it. `apportion settings` lists all settings, and `make generated` writes this page.",
    "",
    "- Python uses snake case: `spark.apportion.sources.maxParallelism` is the keyword `sources_max_parallelism`.",
    "- Write sizes like `64MB`: 1 MB is 1 MiB. A number without a unit is bytes.",
    "- Write times like `30s` or `5min`. A number without a unit is seconds.",
    "- Descriptions leave out the prefix `spark.apportion.`.",
    "",
    "## The most important settings",
    "",
    "These settings are enough for most jobs. Change `dataVolumePerTask` first. [Policies](policies.md) describes the",
    "policy file, and [History](history.md) the history.",
    "",
    rows(first),
    "",
    Category.all.map(section).mkString("\n\n"),
    "",
    "## Rules that can be switched off",
    "",
    s"`${Settings.RulesDisabled.key}` takes a list of these names.",
    "",
    table(
      Seq("rule", "while it is off"),
      SettingRegistry.rules.map(rule => Seq(s"`${rule.name}`", rule.withoutIt))
    )
  )

  /** Settings that most people need, in the order of the page. */
  private def first: Seq[SettingEntry[_]] = {
    val names = Seq(
      "dataVolumePerTask",
      "enabled",
      "mode",
      "minParallelism",
      "maxParallelism",
      "ranges",
      "history.path",
      "policies"
    )
    names.map(name => SettingRegistry.documented.find(_.name == name).get)
  }

  /** First paragraph of a section of settings. */
  private val introductions = Map(
    Category.General -> "To find out which rule causes a problem, switch off one at a time.",
    Category.TasksPerStage -> (
      "How many tasks read a shuffle, and what each task reads. [Concepts](concepts.md) explains the formula, and " +
        "[Files](files.md#sizes-of-written-files) the sizes of written files."
    ),
    Category.FileScans -> "How many tasks [scan files](files.md#scans). `dataVolumePerTask` applies to scans too.",
    Category.Hints -> "[Hints](hints.md) override settings for one query block.",
    Category.TaskSlots ->
      "Queries can wait for task slots and request executors: [Slots](slots.md). Both are off by default.",
    Category.Reporting -> "Where you can see [decisions](decisions.md)."
  )

  /** The settings of one category, without the most important ones. */
  private def section(category: Category): String = Seq(
    s"## ${category.title}",
    "",
    introductions(category),
    "",
    rows(SettingRegistry.documented.filter(_.category eq category).diff(first))
  ).mkString("\n")

  private def rows(settings: Seq[SettingEntry[_]]): String = table(
    Seq("setting", "default", "allowed", "meaning"),
    settings.map(setting => Seq(s"`${setting.key}`", default(setting), setting.allowed.text, setting.doc))
  )

  /** The default as code, unless the text has a unit that differs from what `SET` accepts. */
  private def default(setting: SettingEntry[_]): String = {
    val text = setting.defaultText
    if (setting.default.map(_.toString).contains(text)) s"`$text`" else text
  }

  private def decisions: String = lines(
    "# Decisions",
    "",
    "This page lists the columns of Apportion's table functions. Any SQL client can call them.",
    "",
    "## apportion_decisions",
    "",
    "`SELECT * FROM apportion_decisions()` returns the last decisions of the session, oldest first. There is a row for",
    "each exchange group, such as both sides of a join, and for each file scan. In Python, use",
    "`apportion.decisions(spark)`.",
    "",
    "`apportion_decisions('all')` returns the decisions of all sessions of the application. If `spark.acls.enable` is",
    "true, only users that may view Spark's UI can call it.",
    "",
    "The column `reason` looks like this:",
    "",
    "```text",
    "8 tasks: 10 MiB at 1 MiB per task (session setting) makes 10, rounded to 8 (power of two).",
    "```",
    "",
    "After the number of tasks, the sentence lists limits that changed it, and remarks.",
    "",
    columns(DecisionTable.schema),
    "",
    "Values of `kind` and `clamps`:",
    "",
    (Kind.all.map(kind => s"- `${kind.name}`: ${kind.doc}.") :+
      "- `unchanged`: Apportion changed nothing; `reason` says why.").mkString("\n"),
    "",
    "## apportion_slots",
    "",
    "`SELECT * FROM apportion_slots('SELECT ...')` plans a query without running it. It returns a row for each stage,",
    "for each group of stages that share task slots, and for the query. The second argument is the number of slots to",
    "share between the stages, by default all available slots. The third one is a time, such as `'10 min'`: the row of",
    "the query then has the smallest number of slots with which it ends in time. [Slots](slots.md) has an example.",
    "",
    columns(PlannedSlots.schema),
    "",
    "## apportion_resources",
    "",
    "`SELECT * FROM apportion_resources()` returns the last changes of the application's task slots, oldest first. In",
    "Python, use `apportion.resources.history(spark)`.",
    "",
    columns(ResourceHistory.schema),
    "",
    "## apportion_streams",
    "",
    "`SELECT * FROM apportion_streams()` returns the newest batch of each [stream](streams.md) that Apportion controls,",
    "and the last 1,000 other records of the application: rescales, failures and ends. Times ending in `_millis` are in",
    "milliseconds. The event log has all batches, as events of the class `io.apportion.streams.StreamEvent`.",
    "",
    columns(StreamRecord.schema)
  )

  private def columns(schema: StructType): String = table(
    Seq("column", "meaning"),
    schema.map(column => Seq(s"`${column.name}`", column.getComment().mkString + fields(column.dataType)))
  )

  /** The names of the fields of a struct, or of the structs of an array. */
  private def fields(dataType: DataType): String = dataType match {
    case ArrayType(element, _) => fields(element)
    case struct: StructType    => struct.names.mkString(" (`", "`, `", "`)")
    case _                     => ""
  }

  private def table(header: Seq[String], rows: Seq[Seq[String]]): String =
    (header +: header.map(_ => "---") +: rows).map(_.mkString("| ", " | ", " |")).mkString("\n")

  private def lines(lines: String*): String = lines.mkString("", "\n", "\n")

  def main(args: Array[String]): Unit = all.foreach { file =>
    Option(file.path.getParent).foreach(Files.createDirectories(_))
    Files.writeString(file.path, file.content)
    println(s"wrote ${file.path}")
  }
}

package io.apportion.conf

import java.nio.file.{Files, Path, Paths}

import com.fasterxml.jackson.databind.{ObjectMapper, SerializationFeature}
import io.apportion.PythonBridge

/** The files that are generated from the settings registry. */
object SettingsFiles {
  final case class GeneratedFile(path: Path, content: String)

  private val root = Paths.get(sys.props.getOrElse("apportion.root", "."))

  def all: Seq[GeneratedFile] = Seq(
    GeneratedFile(root.resolve("python/apportion/settings.json"), json),
    GeneratedFile(root.resolve("docs/settings.md"), table)
  )

  private def json: String = {
    val mapper = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT)
    mapper.writeValueAsString(mapper.readTree(PythonBridge.settings())) + "\n"
  }

  private def table: String = {
    val rows = Settings.all.map { setting =>
      s"| `${setting.key}` | ${setting.default.fold("not set")(d => s"`$d`")} | ${setting.allowed.text} | ${setting.doc} | ${setting.since} |"
    }
    s"""# Settings
       |
       |SQL confs: `SET name = value`, `spark.conf.set`, `--conf` at submit time. `SET -v` shows them too.
       |
       || setting | default | allowed | meaning | since |
       ||---|---|---|---|---|
       |${rows.mkString("\n")}
       |""".stripMargin
  }

  /** Writes the files. */
  def main(args: Array[String]): Unit = all.foreach { file =>
    Files.createDirectories(file.path.getParent)
    Files.writeString(file.path, file.content)
    println(s"wrote ${file.path}")
  }
}

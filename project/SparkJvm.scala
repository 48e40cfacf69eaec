import java.io.File
import java.net.URLClassLoader

/** What a JVM needs to run Spark in tests and benchmarks. */
object SparkJvm {

  /** The `--add-opens` that this Spark needs on Java 17 and later: asked of Spark itself, as they differ by version. */
  def moduleOptions(classpath: Seq[File]): Seq[String] = {
    val loader = new URLClassLoader(classpath.map(_.toURI.toURL).toArray, null)
    try
      loader
        .loadClass("org.apache.spark.launcher.JavaModuleOptions")
        .getMethod("defaultModuleOptions")
        .invoke(null)
        .toString
        .split(' ')
        .toSeq
    finally loader.close()
  }

  /**
   * Tests run most code a few times only, and the second compiler took 45 % of their CPU time. Of the rest, the collector G1
   * took a tenth more than this one. With one compiler, a JVM has room for 48 MiB of compiled code by default. Tests fill
   * it, and a thread that searched for code to drop took 8 %.
   */
  val quickTests: Seq[String] = Seq("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseParallelGC")

  /**
   * Spark 4 gives each session a class loader in its executors. It asks the driver for each class that the compiler of
   * generated code looks up in vain, which took a fifth of the time of AdaptiveWritesSuite, and nothing of suites with few
   * queries. The smoke tests keep Spark's default.
   */
  val oneClassLoader: String = "-Dspark.sql.artifact.isolation.enabled=false"

  /** Settings that every session starts with: small, and nothing listening. */
  def sessionOptions(target: File, logging: File): Seq[String] = Seq(
    s"-Dlog4j2.configurationFile=$logging",
    "-Dspark.master=local[2]",
    "-Dspark.app.name=apportion",
    "-Dspark.ui.enabled=false",
    "-Dspark.driver.host=localhost",
    // Generated code that does not compile fails the query, instead of being interpreted.
    "-Dspark.sql.codegen.fallback=false",
    s"-Dspark.sql.warehouse.dir=${target / "warehouse"}"
  ) ++ memory.map(folder => s"-Dspark.local.dir=$folder")

  /** A shuffle of Spark's 200 partitions opens hundreds of files, which is faster in memory. */
  private def memory: Option[File] = Some(new File("/dev/shm")).filter(_.getUsableSpace >= (4L << 30))

  private implicit final class Folder(private val folder: File) extends AnyVal {
    def /(name: String): File = new File(folder, name)
  }
}

/**
 * A Spark minor version that Apportion is tested with.
 *
 * @param minor
 *   as in jar names, e.g. "4.2"
 * @param artifact
 *   the release of `spark-sql` to test with
 * @param jackson
 *   the version of Jackson that it comes with
 * @param scalaVersions
 *   a full Scala version for each Scala binary version that this Spark is published for
 * @param java
 *   the oldest Java that this Spark runs on, and so its jar does
 * @param jar
 *   the minor version whose jar it runs; that jar is compiled against it
 * @param shims
 *   folders beside `jvm/src/main/scala` (and `jvm/src/test/scala`) with the sources that differ between Spark versions. A
 *   folder that several versions need is listed by each of them; one that does not exist is ignored.
 */
final case class SparkVersion(
    minor: String,
    artifact: String,
    jackson: String,
    scalaVersions: Seq[String],
    java: Int,
    jar: String,
    shims: Seq[String]
) {

  /** The builds of this version: one for each Scala version. */
  def builds: Seq[SparkBuild] = scalaVersions.map(SparkBuild(this, _))
}

object SparkVersion {

  /** Every supported version, the newest first. */
  val all: Seq[SparkVersion] = Seq(
    SparkVersion("4.2", "4.2.0", "2.21.2", Seq("2.13.18"), 17, "4.2", Seq("scala-spark-4", "scala-spark-checksums")),
    SparkVersion("4.1", "4.1.3", "2.21.2", Seq("2.13.17"), 17, "4.2", Seq("scala-spark-4", "scala-spark-checksums")),
    SparkVersion("4.0", "4.0.4", "2.18.6", Seq("2.13.16"), 17, "4.2", Seq("scala-spark-4")),
    SparkVersion("3.5", "3.5.9", "2.15.2", Seq("2.13.8", "2.12.18"), 8, "3.5", Seq("scala-spark-3"))
  )
}

/** One sbt project: a Spark version with one of its Scala versions. */
final case class SparkBuild(spark: SparkVersion, scalaVersion: String) {

  /** e.g. "2.13" */
  val scalaBinary: String = scalaVersion.split('.').take(2).mkString(".")

  /** The sbt project: `spark42`, or `spark35_2_12` where a Spark version has several Scala versions. */
  val id: String = {
    val scala = if (spark.scalaVersions.size > 1) s"_$scalaBinary" else ""
    s"spark${spark.minor.replace(".", "")}$scala".replace('.', '_')
  }

  /** Whether a jar is compiled for this Spark. */
  val hasJar: Boolean = spark.minor == spark.jar
}

object SparkBuild {

  /** Every build, the default one (the newest Spark) first. */
  val all: Seq[SparkBuild] = SparkVersion.all.flatMap(_.builds)

  val default: SparkBuild = all.head

  val withJar: Seq[SparkBuild] = all.filter(_.hasJar)
}

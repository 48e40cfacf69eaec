// One project for each build in project/SparkVersion.scala (spark42, spark41, ...), all from the same sources in jvm/. The root
// project stands for the newest: `sbt test` tests that one, `sbt spark41/test` another, `sbt testAll` each. `sbt decision/test` tests
// the arithmetic in seconds, without Spark. `sbt jars` packages the jars, `sbt publishAll` puts them into the local Maven repository.
//
// The newest build is compiled in three steps, so that the compiler refuses wrong imports: `decision` has no Spark on its class path,
// and `core` none of the packages that a decision can do without. All three are in one jar.

ThisBuild / version := "0.1.0"
ThisBuild / organization := "io.apportion"
ThisBuild / scalaVersion := SparkBuild.default.scalaVersion
ThisBuild / versionScheme := Some("early-semver")
ThisBuild / licenses := Seq(License.Apache2)

val jarFolder = settingKey[File]("Where the jars go, and jars.txt, which lists them.")
val jars = taskKey[Seq[File]]("Packages Apportion for every Spark version, and nothing else into the jars folder.")

// As sbt's default, but for two JVMs of tests at a time.
Global / concurrentRestrictions := Seq(
  Tags.limitAll(java.lang.Runtime.getRuntime.availableProcessors),
  Tags.limit(Tags.ForkedTestGroup, 2),
  Tags.exclusiveGroup(Tags.Clean)
)

ThisBuild / jarFolder := (ThisBuild / baseDirectory).value / "target" / "jars"

val JavaOfTests = 17

def compilerOptions(java: Int) = Seq(
  "-encoding",
  "utf8",
  "-release",
  java.toString,
  "-deprecation",
  "-feature",
  "-unchecked",
  // Lines of stack traces, but not the names of local variables, which are 6 % of the jars.
  "-g:line",
  "-Xlint",
  "-Werror"
)

val testLibraries = Seq(
  "org.scalatest" %% "scalatest" % "3.2.20" % Test,
  "org.scalacheck" %% "scalacheck" % "1.18.1" % Test,
  "org.scalatestplus" %% "scalacheck-1-18" % "3.2.19.0" % Test
)

/** The arithmetic of decisions among sources of Scala, and its tests. */
def decisionSources(scala: File): Seq[File] = {
  val own = scala / "scala" / "io" / "apportion"
  ((own / "decision" ** "*.scala") +++ (own / "Vectors.scala")).get()
}

/** Its suites, without what other tests use too. */
def decisionSuites(test: File): Seq[File] = decisionSources(test).filterNot(_.getName == "Vectors.scala")

/** What a decision needs beside the arithmetic: packages, and the access to Spark without the pages of the web UI. */
def coreSources(main: File): Seq[File] = {
  val packages =
    Seq("aqe", "groups", "history", "memory", "reads", "report", "rules", "settings", "shufflewrites", "util")
  val folders = packages.map("io/apportion/" + _) ++ Seq("org/apache/spark/apportion", "org/apache/spark/sql")
  val sources = for (root <- "scala" +: SparkBuild.default.spark.shims; folder <- folders) yield main / root / folder
  ((sources ** "*.scala") --- (main ** "ui" ** "*.scala")).get()
}

val sparkJvm = Seq(
  fork := true,
  baseDirectory := (ThisBuild / baseDirectory).value,
  javaOptions ++= "-Xmx2g" +: SparkJvm.moduleOptions(externalDependencyClasspath.value.files),
  javaOptions ++= SparkJvm.sessionOptions(
    target.value,
    (ThisBuild / baseDirectory).value / "jvm" / "src" / "test" / "resources" / "log4j2.properties"
  )
)

val quickTests = Seq(javaOptions ++= SparkJvm.quickTests)

// The one suite that runs on every Spark in continuous integration: to compile all suites for each would take too long.
val Smoke = config("smoke").extend(Test, Provided)

val smokeSettings = inConfig(Smoke)(Defaults.testSettings ++ sparkJvm ++ quickTests) ++ Seq(
  Smoke / unmanagedSources := Seq(
    "io/apportion/SmokeSuite.scala",
    "io/apportion/SparkSuite.scala",
    "org/apache/spark/sql/ActiveSession.scala"
  ).map((Test / sourceDirectory).value / "scala" / _),
  Smoke / internalDependencyClasspath := (Compile / exportedProducts).value,
  Smoke / scalacOptions := compilerOptions(JavaOfTests)
)

val publishing: Seq[Setting[_]] = Seq(
  // sbt would make 4-2 of 4.2.
  moduleName := name.value,
  description := "Decides how many tasks read each shuffle of a Spark SQL query, from the bytes it produced",
  Compile / packageBin / mappings += (ThisBuild / baseDirectory).value / "LICENSE" -> "META-INF/LICENSE",
  // Maven repositories ask for a jar of an API's pages; the API of this one is SQL.
  Compile / doc / sources := Nil,
  pomPostProcess := PomWithoutTests.of
)

// Tests without a jar of their own run the newest one.
val newestClasses = Def.task {
  (newest / Compile / exportedProducts).value ++ (newest / Compile / internalDependencyClasspath).value
}

/** Gives every package the methods of collections that Scala 2.12 lacks, so that the shared sources need no imports for it. */
val packageObjects = Def.task {
  val scala = (Compile / scalaSource).value
  val folders =
    (scala ** "*.scala").get().map(_.getParentFile).distinct.sorted.filterNot(_ == scala / "io" / "apportion")
  val objects = folders.flatMap(IO.relativize(scala, _)).map { path =>
    val (name, parents) = path.split('/').reverse.splitAt(1)
    s"package ${parents.reverse.mkString(".")} { package object ${name.head} extends _root_.io.apportion.Scala213 }"
  }
  val file = (Compile / sourceManaged).value / "packages.scala"
  IO.writeLines(file, objects)
  Seq(file)
}

def sparkProject(build: SparkBuild): Project =
  Project(build.id, file("jvm"))
    .configs(Smoke)
    .settings(smokeSettings)
    .settings(
      name := s"apportion-spark-${build.spark.minor}",
      scalaVersion := build.scalaVersion,
      Compile / scalacOptions := compilerOptions(build.spark.java),
      if (build.hasJar) Nil
      else
        Seq(
          Compile / sources := Nil,
          Test / unmanagedClasspath ++= newestClasses.value,
          Smoke / unmanagedClasspath ++= newestClasses.value
        ),
      if (build.scalaBinary == "2.12") Compile / sourceGenerators += packageObjects.taskValue else Nil,
      Test / scalacOptions := compilerOptions(JavaOfTests),
      target := (ThisBuild / baseDirectory).value / "target" / build.id,
      publishing,
      // Spark brings it.
      autoScalaLibrary := false,
      libraryDependencies ++= Seq(
        "org.apache.spark" %% "spark-sql" % build.spark.artifact % Provided,
        // Tables that MERGE INTO can write to; the schemas and queries of TPC-DS and TPC-H
        "org.apache.spark" %% "spark-catalyst" % build.spark.artifact % Test classifier "tests",
        "org.apache.spark" %% "spark-sql" % build.spark.artifact % Test classifier "tests",
        // Every distribution of Spark has it, for Kubernetes.
        "com.fasterxml.jackson.dataformat" % "jackson-dataformat-yaml" % build.spark.jackson % Test
      ) ++ testLibraries,
      for (config <- Seq(Compile, Test))
        yield config / unmanagedSourceDirectories ++= build.spark.shims.map((config / sourceDirectory).value / _),
      // The newest build formats the sources that all of them share.
      for (config <- Seq(Compile, Test) if build != SparkBuild.default)
        yield config / scalafmt / unmanagedSources := {
          val shared = (config / scalaSource).value
          (config / unmanagedSources).value.filter(IO.relativize(shared, _).isEmpty)
        },
      // `decision` runs them.
      Test / unmanagedSources --= (if (build == SparkBuild.default) decisionSuites((Test / sourceDirectory).value)
                                   else Nil),
      // The suites of a JVM run one after the other, as it has one Spark. Two of them, as a small query keeps one core busy.
      // Suites of one package take similar times, so they are divided by a hash of their names.
      Test / testGrouping := {
        val options = (Test / forkOptions).value
        val folder = target.value
        (Test / definedTests).value
          .groupBy(test => java.lang.Math.floorMod(test.name.hashCode, 2).toString)
          .map { case (name, tests) =>
            val ofItsOwn = s"-Dspark.sql.warehouse.dir=${folder / "warehouse" / name}"
            Tests.Group(name, tests, Tests.SubProcess(options.withRunJVMOptions(options.runJVMOptions :+ ofItsOwn)))
          }
          .toSeq
      },
      Test / testOptions += Tests.Argument(TestFrameworks.ScalaTest, "-oDF"),
      inConfig(Test)(sparkJvm ++ quickTests :+ (javaOptions += SparkJvm.oneClassLoader))
    )

def newestProject: Project =
  sparkProject(SparkBuild.default)
    .dependsOn(core)
    .settings(
      Compile / unmanagedSources --= {
        val main = (Compile / sourceDirectory).value
        decisionSources(main) ++ coreSources(main)
      },
      Compile / packageBin / mappings ++=
        (decision / Compile / packageBin / mappings).value ++ (core / Compile / packageBin / mappings).value,
      Compile / packageSrc / mappings ++=
        (decision / Compile / packageSrc / mappings).value ++ (core / Compile / packageSrc / mappings).value,
      // They are in the jar, and not artifacts of their own.
      projectDependencies := Nil
    )

lazy val sparkProjects = new CompositeProject {
  override val componentProjects: Seq[Project] =
    newestProject +: SparkBuild.all.tail.map(sparkProject)
}

lazy val newest = LocalProject(SparkBuild.default.id)

lazy val benchmarks = project
  .in(file("target/benchmarks"))
  .enablePlugins(JmhPlugin)
  .dependsOn(newest % "compile->compile;compile->provided;compile->test")
  .settings(
    publish / skip := true,
    scalacOptions := compilerOptions(JavaOfTests),
    Compile / sourceDirectory := (ThisBuild / baseDirectory).value / "jvm" / "src" / "jmh",
    inConfig(Jmh)(sparkJvm)
  )

lazy val decision = project
  .in(file("target/decision"))
  .settings(
    publish / skip := true,
    scalacOptions := compilerOptions(JavaOfTests),
    for (config <- Seq(Compile, Test))
      yield config / unmanagedSources := decisionSources(
        (ThisBuild / baseDirectory).value / "jvm" / "src" / config.name.replace("compile", "main")
      ),
    Test / unmanagedResourceDirectories := Seq(
      (ThisBuild / baseDirectory).value / "jvm" / "src" / "test" / "resources"
    ),
    libraryDependencies ++= ("com.fasterxml.jackson.core" % "jackson-databind" % SparkBuild.default.spark.jackson % Test) +: testLibraries
  )

lazy val core = project
  .in(file("target/core"))
  .dependsOn(decision)
  .settings(
    publish / skip := true,
    scalacOptions := compilerOptions(JavaOfTests),
    Compile / unmanagedSources := coreSources((ThisBuild / baseDirectory).value / "jvm" / "src" / "main"),
    libraryDependencies += "org.apache.spark" %% "spark-sql" % SparkBuild.default.spark.artifact % Provided
  )

lazy val root = project
  .in(file("."))
  .aggregate(decision, newest, benchmarks)
  .settings(
    publish / skip := true,
    jars := {
      val packaged =
        (Compile / packageBin).all(ScopeFilter(inProjects(SparkBuild.withJar.map(b => LocalProject(b.id)): _*))).value
      val list = jarFolder.value / "jars.txt"
      IO.delete(jarFolder.value)
      IO.createDirectory(jarFolder.value)
      val built = packaged.map(jar => RuntimeJar.write(jar, jarFolder.value / jar.getName))
      IO.writeLines(list, built.map(_.getName))
      streams.value.log.info(s"${built.size} jars in ${jarFolder.value}")
      built
    },
    jars / aggregate := false
  )

// The newest build and the oldest have all sources.
val formatted = Seq(decision.id, core.id, SparkBuild.default.id, SparkBuild.all.last.id, "benchmarks")
addCommandAlias("format", (formatted.map(_ + "/scalafmtAll") :+ "scalafmtSbt").mkString(";"))
// At the same time, as the formatter and the compiler each keep one core busy. To compile benchmarks is to compile tests.
val checks = Seq("benchmarks/compile", "scalafmtSbtCheck") ++ formatted.map(_ + "/scalafmtCheckAll")
addCommandAlias("check", checks.mkString("all ", " ", ""))
addCommandAlias("generate", s"${SparkBuild.default.id}/Test/runMain io.apportion.GeneratedFiles")
addCommandAlias("testAll", SparkBuild.all.map(_.id + "/test").mkString(";"))
// One build of each other Spark.
val smokeTests = SparkVersion.all.tail.map(_.builds.last.id + "/Smoke/test")
addCommandAlias("smokeTestOthers", smokeTests.mkString("all ", " ", ""))
addCommandAlias("testAndSmokeTestOthers", ("test" +: smokeTests).mkString("all ", " ", ""))
addCommandAlias("publishAll", SparkBuild.withJar.map(_.id + "/publishM2").mkString(";"))

package io.apportion.writes

import java.nio.file.{Files, Paths}

import scala.jdk.CollectionConverters._

import io.apportion.SparkSuite
import io.apportion.report.DecisionLog
import io.apportion.rules.Logged
import org.apache.commons.io.FileUtils
import org.apache.hadoop.fs.Path
import org.apache.spark.apportion.Listeners
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.{DataFrame, Row, SaveMode, SparkSession}
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.functions.{col, max, rand}
import org.scalatest.concurrent.Eventually
import org.scalatest.prop.TableDrivenPropertyChecks._
import org.scalatest.time.{Seconds, Span}

/** The files that statements write with `write.targetFileSize`. */
class SizeFilesSuite extends SparkSuite with Eventually {
  override protected def generatesCode: Boolean = true

  implicit override val patienceConfig: PatienceConfig = PatienceConfig(timeout = Span(30, Seconds))

  override protected def submitTimeConf: Map[String, String] =
    Map("spark.apportion.history.path" -> Files.createTempDirectory("history").toString)

  private val Target = 128L << 10
  private val settings = Seq("write.targetFileSize" -> Target.toString, "spark.sql.shuffle.partitions" -> "64")

  /** Rows of about 40 bytes that hardly compress, with `k` of 0 to 3. */
  private def rows(session: SparkSession): DataFrame =
    session.range(0, Count, 1, 4).selectExpr("id", "id % 4 AS k", "md5(cast(id AS string)) AS text")

  /** The same rows, from a shuffle. */
  private def shuffled(session: SparkSession): DataFrame =
    rows(session).groupBy("text").agg(max("id").as("id"), max("k").as("k"))

  private val Count = 40000L

  private def inFolder[T](body: String => T): T = {
    val folder = Files.createTempDirectory("written")
    try body(folder.resolve("table").toString)
    finally FileUtils.deleteDirectory(folder.toFile)
  }

  private def sizes(folder: String): Seq[Long] = {
    val files = Files.walk(Paths.get(folder))
    try files.iterator.asScala.filter(_.getFileName.toString.startsWith("part-")).map(Files.size).toSeq
    finally files.close()
  }

  /** Share of the bytes in files of 0.5 to 1.5 times the target. */
  private def shareNear(sizes: Seq[Long]): Double =
    sizes.filter(size => size >= Target / 2 && size <= Target * 1.5).sum.toDouble / sizes.sum

  private def lastReason(session: SparkSession): String = DecisionLog.of(session).all.last.reason

  private val formats = Table("format", "parquet", "json")

  test("an earlier run shows how many tasks make files of the target size") {
    forAll(formats) { format =>
      inFolder { folder =>
        withSession(settings: _*) { session =>
          def write() = shuffled(session).write.mode("overwrite").format(format).save(folder)
          write()
          eventually {
            write()
            assert(lastReason(session).contains("in an earlier run"))
          }
          assert(shareNear(sizes(folder)) > 0.9, s"${sizes(folder)}, ${lastReason(session)}")
          assert(session.read.format(format).load(folder).count() == Count)
        }
      }
    }
  }

  test("without an earlier run, a byte of the shuffle makes as many bytes of files as usual") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        shuffled(session).write.parquet(folder)
        assert(shareNear(sizes(folder)) > 0.9, s"${sizes(folder)}, ${lastReason(session)}")
        assert(
          lastReason(session).contains("(write.targetFileSize 128 KiB, if 1 byte makes 0.70 bytes of files, as usual)")
        )
      }
    }
  }

  test("without an earlier run, a stage that may add rows is as under Spark") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        shuffled(session).selectExpr("id", "explode(sequence(1, 2)) AS n").write.parquet(folder)
        assert(!lastReason(session).contains("write.targetFileSize"))
      }
    }
  }

  private def sums(frame: DataFrame): Row = frame.selectExpr("count(*)", "sum(id)", "sum(k)").head()

  test("an application uses the history of an earlier one") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        def write() = shuffled(session).write.mode("overwrite").parquet(folder)
        write()
        eventually {
          EarlierWrites.inApplication.forget(spark.sparkContext)
          write()
          assert(lastReason(session).contains("in an earlier run"))
        }
      }
    }
  }

  private val statements = Table(
    "statement",
    "CREATE TABLE sized USING parquet PARTITIONED BY (k) AS SELECT text, k FROM source",
    "CREATE TABLE sized USING parquet AS SELECT DISTINCT text, k FROM source",
    "INSERT INTO existing SELECT DISTINCT text, k FROM source",
    "INSERT OVERWRITE existing PARTITION (k = 1) SELECT DISTINCT text FROM source"
  )

  test("INSERT and CREATE TABLE AS SELECT write files of the target size") {
    forAll(statements) { statement =>
      withSession(settings: _*) { session =>
        rows(session).createOrReplaceTempView("source")
        session.sql("CREATE TABLE existing (text STRING, k BIGINT) USING parquet PARTITIONED BY (k)")
        try {
          session.sql(statement)
          val table = if (statement.contains("existing")) "existing" else "sized"
          val files = session.table(table).select("_metadata.file_path", "_metadata.file_size").distinct()
          assert(shareNear(files.collect().map(_.getLong(1)).toSeq) > 0.9)
          assert(session.table(table).count() == Count)
        } finally Seq("existing", "sized").foreach(table => session.sql(s"DROP TABLE IF EXISTS $table"))
      }
    }
  }

  private val Property = "TBLPROPERTIES ('spark.apportion.write.targetFileSize' = '128k')"
  private val ofTables = Table(
    "statement",
    s"CREATE TABLE sized USING parquet PARTITIONED BY (k) $Property AS SELECT text, k FROM source",
    s"CREATE TABLE sized USING parquet $Property AS SELECT DISTINCT text, k FROM source",
    "INSERT INTO existing SELECT DISTINCT text, k FROM source",
    "INSERT OVERWRITE existing PARTITION (k = 1) SELECT DISTINCT text FROM source"
  )

  test("a table property sets the target size of a table's files") {
    forAll(ofTables) { statement =>
      withSession("spark.sql.shuffle.partitions" -> "64") { session =>
        rows(session).createOrReplaceTempView("source")
        session.sql(s"CREATE TABLE existing (text STRING, k BIGINT) USING parquet PARTITIONED BY (k) $Property")
        try {
          session.sql(statement)
          val table = if (statement.contains("existing")) "existing" else "sized"
          val files = session.table(table).select("_metadata.file_path", "_metadata.file_size").distinct()
          assert(shareNear(files.collect().map(_.getLong(1)).toSeq) > 0.9)
          assert(session.table(table).count() == Count)
        } finally Seq("existing", "sized").foreach(table => session.sql(s"DROP TABLE IF EXISTS $table"))
      }
    }
  }

  private def createdWith(property: String, value: String, session: SparkSession): String = {
    shuffled(session).createOrReplaceTempView("source")
    try {
      session.sql(
        s"CREATE TABLE created USING parquet TBLPROPERTIES ('spark.apportion.$property' = '$value') AS TABLE source"
      )
      lastReason(session)
    } finally session.sql("DROP TABLE IF EXISTS created")
  }

  test("the reason names the table property, or the session's setting, which has priority") {
    withSession("spark.sql.shuffle.partitions" -> "64") { session =>
      assert(
        createdWith("write.targetFileSize", "128k", session).contains("(table property write.targetFileSize 128 KiB")
      )
      session.conf.set("spark.apportion.write.targetFileSize", "256k")
      assert(createdWith("write.targetFileSize", "128k", session).contains("(write.targetFileSize 256 KiB"))
    }
  }

  private val wrong = Table(
    ("property", "value", "warning"),
    ("write.targetFileSize", "tiny", "targetFileSize is tiny. Allowed: 65536 bytes or more. It is ignored."),
    ("write.targetFileSize", "1k", "targetFileSize is 1k. Allowed: 65536 bytes or more. It is ignored."),
    ("write.fileSize", "1m", "fileSize is ignored. Known: spark.apportion.write.targetFileSize.")
  )

  test("a wrong table property is logged once, with the table and what is allowed") {
    forAll(wrong) { (property, value, warning) =>
      withSession() { session =>
        val lines = Logged.by("io.apportion.writes.TargetFileSize") {
          for (_ <- 1 to 2) assert(!createdWith(property, value, session).contains("targetFileSize"))
        }
        assert(lines.map(_.contains("created: property spark.apportion.write.")) == Seq(true), lines)
        assert(lines.head.endsWith(warning), lines)
      }
    }
  }

  test("a table with partitions gets a rebalance, and its large partitions several files") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        rows(session).write.partitionBy("k").parquet(folder)
        assert(shareNear(sizes(folder)) > 0.9, s"${sizes(folder)}, ${lastReason(session)}")
        assert(sums(session.read.parquet(folder)) == sums(rows(session)))
      }
    }
  }

  test("small partitions of a table share a task") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        rows(session).withColumn("k", col("id") % 40).write.partitionBy("k").parquet(folder)
        assert(sizes(folder).size == 40)
        assert(DecisionLog.of(session).all.last.tasks < 20)
      }
    }
  }

  private val placed = Table[String, DataFrame => DataFrame](
    ("query", "change"),
    ("repartition", _.repartition(3)),
    ("coalesce", _.coalesce(2)),
    ("coalesce below a generator", _.coalesce(2).selectExpr("*", "explode(array(1, 2)) AS n")),
    ("coalesce below a typed filter", _.coalesce(2).filter((row: Row) => !row.isNullAt(0))),
    ("sort", _.orderBy("id")),
    ("limit", _.limit(1000)),
    ("hint", _.hint("rebalance"))
  )

  test("a query that places its rows itself gets no rebalance") {
    forAll(placed) { (_, change) =>
      withSession(settings: _*) { session =>
        val query = change(rows(session))
        val folder = new Path("/nowhere")
        val insert = InsertIntoHadoopFsRelationCommand(
          folder,
          Map.empty,
          ifPartitionNotExists = false,
          query.queryExecution.analyzed.output.filter(_.name == "k"),
          None,
          new ParquetFileFormat,
          Map.empty,
          query.queryExecution.analyzed,
          SaveMode.Append,
          None,
          None,
          query.columns.toSeq
        )
        assert(RebalanceWrites(session)(insert) eq insert)
      }
    }
  }

  test("a rebalance is removed if the rows of finished shuffles fit one file") {
    inFolder { folder =>
      withSession(settings :+ ("write.targetFileSize" -> "1g"): _*) { session =>
        shuffled(session).write.partitionBy("k").parquet(folder)
        assert(sizes(folder).size == 4)
        assert(DecisionLog.of(session).all.map(_.operator) == Seq("HashAggregate"))
      }
    }
  }

  test("a repartition of the query and a hint keep their number of files") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        rows(session).repartition(3).write.parquet(folder)
        assert(sizes(folder).size == 3)
        shuffled(session).hint("parallelism", 2).write.mode("overwrite").parquet(folder)
        assert(sizes(folder).size == 2)
      }
    }
  }

  test("coalesce(1) writes one file, whether the rows come from a shuffle or a scan") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        for ((rows, i) <- Seq(shuffled(session), rows(session)).zipWithIndex) {
          rows.coalesce(1).write.parquet(s"$folder/source$i")
          assert(sizes(s"$folder/source$i").size == 1)
          session.read.parquet(s"$folder/source$i").coalesce(1).write.parquet(s"$folder/target$i")
          assert(sizes(s"$folder/target$i").size == 1)
        }
        shuffled(session).coalesce(2).groupBy("text").agg(max("id"), max("k")).write.parquet(s"$folder/shuffled")
        assert(sizes(s"$folder/shuffled").size > 1)
      }
    }
  }

  test("a statement that only scans files starts another file at the target size if an earlier run wrote the table") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        def write() = session.read.parquet(s"$folder/source").write.mode("overwrite").parquet(s"$folder/target")
        rows(session).coalesce(1).write.parquet(s"$folder/source")
        write()
        Listeners.drain(session.sparkContext)
        write()
        assert(sizes(s"$folder/target").size > 8 && sizes(s"$folder/target").forall(_ <= Target * 1.5))
        assert(sums(session.read.parquet(s"$folder/target")) == sums(rows(session)))
      }
    }
  }

  test("the maximum number of rows that a write sets stays if it is smaller") {
    inFolder { folder =>
      withSession(settings: _*) { session =>
        shuffled(session).write.option("maxRecordsPerFile", 1000).parquet(folder)
        assert(sizes(folder).size >= Count / 1000)
      }
    }
  }

  test("a new query uses the ratio of another query of its table, unless it is extreme") {
    def reasonAfter(first: SparkSession => DataFrame): String = inFolder { folder =>
      withSession(settings: _*) { session =>
        first(session).write.parquet(folder)
        Listeners.drain(session.sparkContext)
        shuffled(session).withColumn("random", rand()).write.mode(SaveMode.Overwrite).parquet(folder)
        lastReason(session)
      }
    }
    assert(reasonAfter(shuffled).contains("in an earlier run of another query"))
    // One row of 100 shuffled ones
    assert(reasonAfter(shuffled(_).where("id % 100 = 0")).contains("as usual"))
  }

  test("a query that runs inside the optimizer of another one does not start that optimizer again") {
    withSession(settings: _*) { session =>
      var (innerRuns, runsAgain) = (false, false)
      val rule = new Rule[LogicalPlan] {
        override def apply(plan: LogicalPlan): LogicalPlan = {
          if (plan.output.map(_.name) == Seq("outer"))
            if (innerRuns) runsAgain = true
            else {
              innerRuns = true
              shuffled(session).queryExecution.toRdd.count()
              innerRuns = false
            }
          plan
        }
      }
      session.experimental.extraOptimizations = Seq(rule)
      try session.range(10).toDF("outer").where("outer > 3").collect()
      finally session.experimental.extraOptimizations = Nil
      assert(!runsAgain)
    }
  }

  test("without RebalanceWrites and SizeFiles, files are as Spark writes them") {
    inFolder { folder =>
      withSession(settings :+ ("rules.disabled" -> "RebalanceWrites,SizeFiles"): _*) { session =>
        rows(session).write.partitionBy("k").parquet(folder)
        assert(sizes(folder).size == 16)
        shuffled(session).write.mode("overwrite").parquet(folder)
        assert(!lastReason(session).contains("write.targetFileSize"))
      }
    }
  }
}

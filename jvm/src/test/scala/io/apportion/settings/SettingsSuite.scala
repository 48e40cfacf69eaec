package io.apportion.settings

import io.apportion.history.HistorySettings
import io.apportion.SparkSuite
import io.apportion.rules.Logged
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.scalatest.prop.TableDrivenPropertyChecks._

class SettingsSuite extends SparkSuite {
  override protected def submitTimeConf: Map[String, String] = Map("spark.apportion.broadcastRatio" -> "0.4")

  private val refused = Table[String, String](
    ("statement", "message"),
    ("SET spark.apportion.parallelism=0", "Allowed: 1 or more, or -1 (decide)."),
    ("SET spark.apportion.parallelism=-2", "Allowed: 1 or more, or -1 (decide)."),
    ("SET spark.apportion.minParallelism=many", "spark.apportion.minParallelism"),
    ("SET spark.apportion.minParallelism=0", "Allowed: 1 or more."),
    ("SET spark.apportion.dataVolumePerTask=0", "Allowed: 1 byte or more."),
    ("SET spark.apportion.dataVolumePerTask=64 Mib of data", "64 Mib of data"),
    ("SET spark.apportion.broadcastRatio=1", "Allowed: above 0.0 and below 1.0."),
    ("SET spark.apportion.ranges=uneven", "Allowed: even, balanced."),
    ("SET spark.apportion.mode=eager", "Allowed: auto, active, reactive, observe."),
    ("SET spark.apportion.rules.disabled=LocalRead", "Did you mean LocalReads?"),
    ("SET spark.apportion.minParallelism=65536", "there is no power of two in [65536, 32768]"),
    ("SET spark.apportion.maxParalelism=5", "Did you mean spark.apportion.maxParallelism?")
  )

  forAll(refused) { (statement, message) =>
    test(s"refused: $statement") {
      withSession() { session =>
        val error = intercept[IllegalArgumentException](session.sql(statement))
        assert(error.getMessage.contains(message))
        session.sql("SELECT 1").collect()
      }
    }
  }

  test("bounds set one by one through spark.conf are refused at the next query, and can be corrected") {
    withSession("maxParallelism" -> "7", "minParallelism" -> "5") { session =>
      val error = intercept[IllegalArgumentException](session.sql("SELECT 1"))
      assert(error.getMessage.contains("spark.apportion.minParallelism is 5 and spark.apportion.maxParallelism is 7"))
      session.sql("SET spark.apportion.maxParallelism=8")
      session.sql("SELECT 1").collect()
    }
  }

  private val exact = Seq("ranges" -> "balanced", "rounding" -> "exact")

  test("bounds without a power of two between them are allowed with exact balanced ranges") {
    withSession(exact: _*) { session =>
      session.sql("SET spark.apportion.maxParallelism=7")
      session.sql("SET spark.apportion.minParallelism=5")
      val decision = only(decisionsOf(session, session.sql("SELECT k, count(*) FROM numbers GROUP BY k")))
      assert(decision.parallelism == 5)
      val even = intercept[IllegalArgumentException](session.sql("SET spark.apportion.ranges=even"))
      assert(even.getMessage.contains("there is no power of two in [5, 7]"))
      val above = intercept[IllegalArgumentException](session.sql("SET spark.apportion.minParallelism=8"))
      assert(above.getMessage.contains("minParallelism is 8 and spark.apportion.maxParallelism is 7: the first must"))
    }
  }

  test("a hint for even ranges lowers the minimum if no power of two is within the bounds") {
    val settings = exact ++ Seq("minParallelism" -> "5", "maxParallelism" -> "7")
    assert(decisionOf("SELECT /*+ RANGES(even) */ k, count(*) FROM numbers GROUP BY k", settings: _*).parallelism == 4)
  }

  test("SET and RESET work and correct settings while two settings are wrong") {
    val wrong =
      Seq("minParallelism" -> "5", "maxParallelism" -> "7", "resources.minSlots" -> "2", "resources.maxSlots" -> "1")
    withSession(wrong: _*) { session =>
      intercept[IllegalArgumentException](session.sql("SELECT 1"))
      assert(session.sql("SET").filter("key = 'spark.apportion.minParallelism'").count() == 1)
      assert(session.sql("SET").collect().count(_.getString(0) == "spark.apportion.minParallelism") == 1)
      session.sql("SET spark.sql.shuffle.partitions=10")
      session.sql("SET spark.apportion.maxParallelism=8")
      session.sql("SET spark.apportion.resources.maxSlots=2")
      session.sql("SELECT 1").collect()
      session.conf.set("spark.apportion.maxParallelism", "7")
      intercept[IllegalArgumentException](session.sql("SELECT 1"))
      session.sql("RESET spark.apportion.maxParallelism")
      session.sql("SELECT 1").collect()
      session.conf.set("spark.apportion.maxParallelism", "7")
      session.sql("RESET")
      session.sql("SELECT 1").collect()
    }
  }

  test("an unknown name that is set through spark.conf is logged once") {
    val lines = Logged.by(classOf[SettingsCheck].getName) {
      withSession("maxParalelism" -> "7") { session =>
        session.sql("SELECT 1").collect()
        session.sql("SELECT 2").collect()
      }
    }
    assert(
      lines == Seq(
        "Unknown setting spark.apportion.maxParalelism. Did you mean spark.apportion.maxParallelism? It is ignored."
      )
    )
  }

  test("a wrong value at submit time is refused when the session starts") {
    val error = intercept[IllegalArgumentException] {
      SparkSession.builder().config("spark.apportion.mode", "eager").getOrCreate().newSession().sql("SELECT 1")
    }
    assert(error.getMessage.contains("spark.apportion.mode"))
  }

  test(
    "a decision names the source of a value: default, session setting, submit-time conf or Spark's own setting"
  ) {
    val decision = decisionOf("SELECT k, count(*) FROM numbers GROUP BY k", "mode" -> "active")
    assert(
      decision.sources.filter { case (name, _) =>
        Set("mode", "broadcastRatio", "minParallelism", "dataVolumePerTask")(name)
      } == Map(
        "mode" -> "session setting",
        "broadcastRatio" -> "submit-time conf",
        "minParallelism" -> "default",
        "dataVolumePerTask" -> "Spark's advisory size, default"
      )
    )
  }

  test("sessions cannot set the directory of the history") {
    withSession() { session =>
      val refused = Seq[() => Unit](
        () => session.sql("SET spark.apportion.history.path=/tmp/history"),
        () => session.conf.set("spark.apportion.history.path", "/tmp/history")
      )
      refused.foreach { set =>
        val message = intercept[AnalysisException](set()).getMessage
        assert(message.toLowerCase.contains("cannot modify the value of") && message.contains("history.path"))
      }
      assert(session.conf.getOption("spark.apportion.history.path").isEmpty)
    }
  }

  private val directories = Table(
    ("value", "is allowed"),
    ("/var/history", true),
    ("history", true),
    ("history/of reports", true),
    ("hdfs://host:8020/history", true),
    ("hdfs:///history", true),
    ("s3a://bucket", true),
    ("file:/tmp/a:b", true),
    ("a:b:c", false),
    ("::::", false),
    ("hdfs:history", false),
    ("hdfs://", false),
    (" ", false)
  )
  forAll(directories) { (value, isAllowed) =>
    test(s"the directory of the history ${if (isAllowed) "can" else "cannot"} be '$value'") {
      val conf = new SQLConf
      def set(): Unit = conf.setConfString(HistorySettings.HistoryPath.key, value)
      if (isAllowed) set()
      else {
        val message = intercept[IllegalArgumentException](set()).getMessage
        assert(message.contains(value) && message.contains("a directory, such as /folder or hdfs://host/folder"))
      }
    }
  }

  test("SET -v shows every documented setting with its doc") {
    val shown = spark.sql("SET -v").collect().map(row => row.getString(0) -> row.getString(2)).toMap
    SettingRegistry.documented.foreach(setting => assert(shown.get(setting.key).contains(setting.doc)))
  }
}

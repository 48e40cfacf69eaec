package org.apache.spark.sql

import java.nio.file.Files

import scala.io.Source

/** TPC-DS and TPC-H: the texts that Spark's own tests have, and views without rows. */
object TpcTables extends TPCDSSchema {

  private val tpch = Map(
    "part" -> """p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT,
      |p_container STRING, p_retailprice DECIMAL(15, 2), p_comment STRING""".stripMargin,
    "supplier" -> """s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING,
      |s_acctbal DECIMAL(15, 2), s_comment STRING""".stripMargin,
    "partsupp" -> "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15, 2), ps_comment STRING",
    "tpch_customer" -> """c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING,
      |c_acctbal DECIMAL(15, 2), c_mktsegment STRING, c_comment STRING""".stripMargin,
    "orders" -> """o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2),
      |o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING""".stripMargin,
    "lineitem" -> """l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15, 2),
      |l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), l_returnflag STRING,
      |l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING,
      |l_shipmode STRING, l_comment STRING""".stripMargin,
    "nation" -> "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "region" -> "r_regionkey BIGINT, r_name STRING, r_comment STRING"
  )

  /** Views for all tables; both benchmarks have a customer, and TPC-H's is called tpch_customer. */
  def createViews(session: SparkSession): Unit = {
    val empty = Files.createTempDirectory("empty").toString
    (tableColumns ++ tpch).foreach { case (name, columns) =>
      val schema = columns.replaceAll("(?i)(var)?char\\(\\d+\\)", "STRING")
      session.read.schema(schema).parquet(empty).createOrReplaceTempView(name)
    }
  }

  /** The queries by name, for these views. */
  def queries: Seq[(String, String)] =
    texts("tpcds", 1 to 99, Seq("", "a", "b")) ++
      texts("tpch", 1 to 22, Seq("")).map { case (name, text) =>
        name -> text.replaceAll("\\bcustomer\\b", "tpch_customer")
      }

  private def texts(benchmark: String, numbers: Range, variants: Seq[String]): Seq[(String, String)] =
    for {
      number <- numbers
      variant <- variants
      name = s"$benchmark/q$number$variant"
      stream <- Option(getClass.getResourceAsStream(s"/$name.sql"))
    } yield name -> Source.fromInputStream(stream, "utf8").mkString
}

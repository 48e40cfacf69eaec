package io.apportion.safety

import org.scalacheck.Gen

/** Generator of queries whose rows do not depend on their order, over the tables `numbers` and `few`. */
object RandomQueries {

  /** A query with the columns `a` and `b`, which are numbers or NULL, and the text `s`. */
  def relation(depth: Int): Gen[String] =
    if (depth == 0) leaf
    else
      Gen.frequency(
        1 -> leaf,
        3 -> aggregate(depth),
        3 -> join(depth),
        2 -> window(depth),
        1 -> semiJoin(depth),
        1 -> distinct(depth),
        1 -> union(depth),
        1 -> placed(depth),
        1 -> subquery(depth)
      )

  /** Settings that change how shuffles are written and read. */
  val settings: Gen[Seq[(String, String)]] = for {
    volume <- Gen.oneOf("256b", "4kb", "64kb", "64mb")
    ranges <- Gen.oneOf("even", "balanced")
    atLeast <- Gen.oneOf("1", "1", "4", "6")
    writes <- Gen.frequency(4 -> "true", 1 -> "false")
    memory <- Gen.oneOf("true", "false")
    partitions <- Gen.oneOf("1", "5", "32", "200")
    broadcasts <- Gen.oneOf("-1", "10MB")
  } yield Seq(
    "dataVolumePerTask" -> volume,
    "ranges" -> ranges,
    "minParallelism" -> atLeast,
    "maxParallelism" -> "64",
    "adaptiveWrites" -> writes,
    "memory.enabled" -> memory,
    "spark.sql.shuffle.partitions" -> partitions,
    "spark.sql.autoBroadcastJoinThreshold" -> broadcasts
  )

  private val leaf: Gen[String] = for {
    table <- Gen.oneOf("numbers", "numbers", "few")
    key <- Gen.oneOf("k", "id % 7", "if(id % 2 = 0, 7, k)", "nullif(k, 3)", "0")
    text <- Gen.oneOf("'x'", "cast(k AS string)", "md5(cast(id AS string))")
    rows <- Gen.oneOf("true", "id % 3 = 0", "k < 10", "id < 0")
  } yield s"SELECT id AS a, $key AS b, $text AS s FROM $table WHERE $rows"

  private def aggregate(depth: Int): Gen[String] = for {
    of <- relation(depth - 1)
    key <- Gen.oneOf("a", "b", "b % 5")
    function <- Gen.oneOf("count(*)", "sum(a)", "count(DISTINCT a)", "size(collect_list(s))")
  } yield s"SELECT $key AS a, $function AS b, max(s) AS s FROM ($of) GROUP BY $key"

  /** One side has each key once, so no join makes more rows than its sides have. */
  private def join(depth: Int): Gen[String] = for {
    (left, right) <- pair(depth)
    kind <- Gen.oneOf("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    hint <- Gen.oneOf("", "/*+ MERGE(r) */", "/*+ SHUFFLE_HASH(r) */", "/*+ BROADCAST(r) */")
    on <- Gen.oneOf("a", "b")
  } yield s"SELECT $hint coalesce(l.a, r.a) AS a, r.b, coalesce(l.s, r.s) AS s FROM ($left) l $kind " +
    s"(SELECT a, max(b) AS b, max(s) AS s FROM ($right) GROUP BY a) r ON l.$on = r.a"

  private def semiJoin(depth: Int): Gen[String] = for {
    (of, other) <- pair(depth)
    condition <- Gen.oneOf("b IN (SELECT b FROM", "a NOT IN (SELECT a FROM", "a IN (SELECT b FROM")
  } yield s"SELECT * FROM ($of) WHERE $condition ($other) WHERE a IS NOT NULL AND b IS NOT NULL)"

  private def window(depth: Int): Gen[String] = for {
    of <- relation(depth - 1)
    function <- Gen.oneOf("row_number()", "rank()", "sum(a)")
  } yield s"SELECT a, $function OVER w AS b, max(s) OVER w AS s FROM ($of) WINDOW w AS (PARTITION BY b ORDER BY a, s)"

  private def distinct(depth: Int): Gen[String] =
    relation(depth - 1).map(of => s"SELECT DISTINCT a % 50 AS a, b, s FROM ($of)")

  private def union(depth: Int): Gen[String] = for {
    (one, other) <- pair(depth)
    all <- Gen.oneOf("UNION ALL", "INTERSECT", "EXCEPT ALL")
  } yield s"($one) $all ($other)"

  private def placed(depth: Int): Gen[String] = for {
    of <- relation(depth - 1)
    hint <- Gen.oneOf(
      "REPARTITION(b)",
      "REPARTITION(3, a)",
      "REBALANCE(b)",
      "REPARTITION_BY_RANGE(a)",
      "PARALLELISM(6)"
    )
  } yield s"SELECT /*+ $hint */ * FROM ($of)"

  private def subquery(depth: Int): Gen[String] = pair(depth).map { case (of, other) =>
    s"SELECT * FROM ($of) WHERE a >= (SELECT min(b) FROM ($other))"
  }

  private def pair(depth: Int): Gen[(String, String)] = Gen.zip(relation(depth - 1), relation(depth - 1))
}

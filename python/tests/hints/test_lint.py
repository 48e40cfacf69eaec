"""The findings of the linter, one case per line. Their messages are in messages.golden.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from apportion.bench.suites import tpc
from apportion.hints import CODES, HintError, add, lint, show
from apportion.hints.grammar import APPORTION

from . import test_rewrite, test_schema, test_show

# text; for each finding, its code and its part of the text
FINDINGS = [
    # Texts that cannot be read.
    ("SELECT /*+ RANGES(even) */ 'a", ["APH001 '"]),
    ('SELECT /*+ RANGES(even) */ "a', ['APH001 "']),
    ("SELECT /*+ RANGES(even) */ `a", ["APH001 `"]),
    ("SELECT /*+ RANGES(even) */ /* a", ["APH001 /*"]),
    ("SELECT /*+ PARALLELISM(8)", ["APH001 /*+"]),
    ("SELECT /*+ RANGES(even) */ {{ a", ["APH001 {{"]),
    ("SELECT /*+ RANGES(even) */ (1", ["APH002 ("]),
    ("SELECT /*+ RANGES(even) */ 1)", ["APH002 )"]),
    ("SELECT /*+ RANGES(even) */ " + "(" * 5000 + ")" * 5000, ["APH002 S"]),
    ("SELECT /*+ PARALLELISM(0) */ (1", ["APH303 0", "APH002 ("]),
    ("SELECT DISTINCT /*+ RANGES(even) */ (1", ["APH101 /*+ RANGES(even) */", "APH002 ("]),
    # Places where Spark allows no hints.
    ("/*+ RANGES(even) */ SELECT 1", ["APH101 /*+ RANGES(even) */"]),
    ("SELECT DISTINCT /*+ RANGES(even) */ a", ["APH101 /*+ RANGES(even) */"]),
    ("SELECT ALL /*+ RANGES(even) */ a", ["APH101 /*+ RANGES(even) */"]),
    ("SELECT a /*+ RANGES(even) */ FROM b", ["APH101 /*+ RANGES(even) */"]),
    ("SELECT a FROM /*+ RANGES(even) */ b", ["APH101 /*+ RANGES(even) */"]),
    ("SELECT a FROM b /*+ RANGES(even) */", ["APH101 /*+ RANGES(even) */"]),
    ("SELECT a FROM b WHERE /*+ RANGES(even) */ c", ["APH101 /*+ RANGES(even) */"]),
    ("SELECT a FROM (/*+ RANGES(even) */ SELECT b)", ["APH101 /*+ RANGES(even) */"]),
    ("WITH a AS (/*+ RANGES(even) */ SELECT 1) SELECT 2", ["APH101 /*+ RANGES(even) */"]),
    ("INSERT /*+ RANGES(even) */ INTO a SELECT 1", ["APH101 /*+ RANGES(even) */"]),
    ("INSERT INTO a /*+ RANGES(even) */ SELECT 1", ["APH101 /*+ RANGES(even) */"]),
    ("UPDATE /*+ RANGES(even) */ a SET b = 1", ["APH101 /*+ RANGES(even) */"]),
    ("DELETE /*+ RANGES(even) */ FROM a", ["APH101 /*+ RANGES(even) */"]),
    (
        "MERGE /*+ RANGES(even) */ INTO a USING b ON c WHEN MATCHED THEN DELETE",
        ["APH101 /*+ RANGES(even) */"],
    ),
    ("VALUES /*+ RANGES(even) */ (1)", ["APH101 /*+ RANGES(even) */"]),
    (
        "SELECT /*+ RANGES(even) */ TRANSFORM(a) USING 'cat' FROM b",
        ["APH101 /*+ RANGES(even) */"],
    ),
    ("SELECT /* + PARALLELISM(8) */ 1", ["APH102 /* + PARALLELISM(8) */"]),
    ("SELECT --+ PARALLELISM(8)\n 1", ["APH102 --+ PARALLELISM(8)"]),
    ("SELECT -- + BROADCAST(t)\r\n 1", ["APH102 -- + BROADCAST(t)"]),
    ("SELECT /* +PARALELISM(8) */ 1", ["APH102 /* +PARALELISM(8) */"]),
    ("SELECT --+ MERGE\n 1", ["APH102 --+ MERGE"]),
    ("SELECT --+ merge the two sides\n 1 /* + 3 more */ -- +1 (me)", []),
    # More than one hint comment, and comments that Spark cannot parse.
    (
        "SELECT /*+ RANGES(even) */ /*+ PARALLELISM(8) */ 1",
        ["APH103 /*+ PARALLELISM(8) */"],
    ),
    ("SELECT /*+ */ 1", ["APH104 */"]),
    ("SELECT /*+ PARALLELISM(t 8) */ 1", ["APH104 8"]),
    ("SELECT /*+ PARALLELISM(4 + 4) */ 1", ["APH104 +"]),
    ("SELECT /*+ PARALLELISM(n => 4) */ 1", ["APH104 =>"]),
    ("SELECT /*+ PARALLELISM 4 */ 1", ["APH301 PARALLELISM", "APH104 4"]),
    ("SELECT /*+ PARALLELISM = 4 */ 1", ["APH301 PARALLELISM", "APH104 ="]),
    ("SELECT /*+ PARALLELISM() */ 1", ["APH301 PARALLELISM()", "APH104 )"]),
    ("SELECT /*+ PARALLELISM(4,) */ 1", ["APH104 )"]),
    ("SELECT /*+ PARALLELISM(4 */ 1", ["APH104 ("]),
    ("SELECT /*+ SOURCE_PARALLELISM(a., 8) */ 1 FROM a", ["APH104 ."]),
    ("SELECT /*+ BROADCAST(größe) */ 1 FROM `größe`, b", ["APH104 größe"]),
    ("SELECT /*+ , RANGES(even) */ 1", ["APH104 ,"]),
    ("SELECT /*+ RANGES(even), */ 1", ["APH104 */"]),
    ("SELECT /*+ RANGES(even),, RANGES(even) */ 1", ["APH104 ,", "APH311 RANGES(even)"]),
    ("SELECT /*+ 'RANGES'(even) */ 1", ["APH104 'RANGES'", "APH202 even"]),
    ("SELECT /*+ RANGES(even) /*+ A */ 1", ["APH104 /*+", "APH202 A"]),
    # Unknown hints.
    ("SELECT /*+ PARALELISM(8) */ 1", ["APH201 PARALELISM"]),
    ("SELECT /*+ Data_Volumes(8) */ 1", ["APH201 Data_Volumes"]),
    ("SELECT /*+ DATAVOLUME(8) */ 1", ["APH201 DATAVOLUME"]),
    ("SELECT /*+ BROADCASTRATIO(0.5) */ 1", ["APH201 BROADCASTRATIO"]),
    ("SELECT /*+ RANGE(even) */ 1", ["APH201 RANGE"]),
    ("SELECT /*+ SOURCE_PARALELISM(8) */ 1", ["APH201 SOURCE_PARALELISM"]),
    ("SELECT /*+ BRODCAST(a) */ 1 FROM a JOIN b", ["APH201 BRODCAST"]),
    ("SELECT /*+ BROADCAST_JOIN(a) */ 1 FROM a JOIN b", ["APH201 BROADCAST_JOIN"]),
    ("SELECT /*+ REPARTION(8) */ 1", ["APH201 REPARTION"]),
    ("SELECT /*+ REBALANCED(8) */ 1", ["APH201 REBALANCED"]),
    ("SELECT /*+ MIN_PARALLELISM(8) */ 1", ["APH201 MIN_PARALLELISM"]),
    ("SELECT /*+ max_parallelism(8) */ 1", ["APH201 max_parallelism"]),
    ("SELECT /*+ SKEW('a') */ 1 FROM a", ["APH202 SKEW"]),
    ("SELECT /*+ Range_Join(a, 10) */ 1 FROM a", ["APH202 Range_Join"]),
    ("SELECT /*+ `My Hint` */ 1", ["APH202 `My Hint`"]),
    # Arguments of Apportion's hints.
    ("SELECT /*+ PARALLELISM */ 1", ["APH301 PARALLELISM"]),
    ("SELECT /*+ PARALLELISM(1, 2, 3) */ 1", ["APH301 PARALLELISM(1, 2, 3)"]),
    ("SELECT /*+ DATA_VOLUME */ 1", ["APH301 DATA_VOLUME"]),
    ("SELECT /*+ BROADCAST_RATIO(0.1, 0.2) */ 1", ["APH301 BROADCAST_RATIO(0.1, 0.2)"]),
    ("SELECT /*+ RANGES */ 1", ["APH301 RANGES"]),
    ("SELECT /*+ SOURCE_PARALLELISM(a, 1, 2) */ 1", ["APH301 SOURCE_PARALLELISM(a, 1, 2)"]),
    ("SELECT /*+ PARALLELISM(a) */ 1", ["APH302 a"]),
    ("SELECT /*+ PARALLELISM('8') */ 1", ["APH302 '8'"]),
    ("SELECT /*+ PARALLELISM(8.0) */ 1", ["APH302 8.0"]),
    ("SELECT /*+ PARALLELISM(8L) */ 1", ["APH302 8L"]),
    ("SELECT /*+ PARALLELISM(4, b) */ 1", ["APH302 b"]),
    ("SELECT /*+ PARALLELISM(f(8)) */ 1", ["APH302 f(8)"]),
    ("SELECT /*+ BROADCAST_RATIO('0.3') */ 1", ["APH302 '0.3'"]),
    ("SELECT /*+ PARALLELISM(0) */ 1", ["APH303 0"]),
    ("SELECT /*+ PARALLELISM(-8) */ 1", ["APH303 -8"]),
    ("SELECT /*+ PARALLELISM(2147483648) */ 1", ["APH303 2147483648"]),
    ("SELECT /*+ PARALLELISM(" + "9" * 5000 + ") */ 1", ["APH303 " + "9" * 5000]),
    ("SELECT /*+ PARALLELISM(0, -1) */ 1", ["APH303 0", "APH303 -1"]),
    ("SELECT /*+ SOURCE_PARALLELISM(0) */ 1", ["APH303 0"]),
    ("SELECT /*+ PARALLELISM(64, 4) */ 1", ["APH304 PARALLELISM(64, 4)"]),
    ("SELECT /*+ PARALLELISM(5, 7) */ 1", ["APH305 PARALLELISM(5, 7)"]),
    ("SELECT /*+ PARALLELISM(3, 3) */ 1", ["APH305 PARALLELISM(3, 3)"]),
    (
        "SELECT /*+ PARALLELISM(1073741825, 2147483647) */ 1",
        ["APH305 PARALLELISM(1073741825, 2147483647)"],
    ),
    ("SELECT /*+ DATA_VOLUME('256') */ 1", ["APH306 '256'"]),
    ("SELECT /*+ DATA_VOLUME('256XB') */ 1", ["APH306 '256XB'"]),
    ("SELECT /*+ DATA_VOLUME(256MB) */ 1", ["APH306 256MB"]),
    ("SELECT /*+ DATA_VOLUME('1.5GB') */ 1", ["APH306 '1.5GB'"]),
    ("SELECT /*+ DATA_VOLUME(0) */ 1", ["APH306 0"]),
    ("SELECT /*+ DATA_VOLUME('8192pb') */ 1", ["APH306 '8192pb'"]),
    ("SELECT /*+ BROADCAST_RATIO(0) */ 1", ["APH307 0"]),
    ("SELECT /*+ BROADCAST_RATIO(1) */ 1", ["APH307 1"]),
    ("SELECT /*+ BROADCAST_RATIO(-0.1) */ 1", ["APH307 -0.1"]),
    ("SELECT /*+ BROADCAST_RATIO(30) */ 1", ["APH307 30"]),
    ("SELECT /*+ RANGES(balance) */ 1", ["APH308 balance"]),
    ("SELECT /*+ RANGES(8) */ 1", ["APH308 8"]),
    ("SELECT /*+ SOURCE_PARALLELISM(8, a) */ 1 FROM a", ["APH309 8", "APH302 a"]),
    ("SELECT /*+ SOURCE_PARALLELISM(f(a), 8) */ 1 FROM a", ["APH309 f(a)"]),
    # Tables of the block.
    ("SELECT /*+ SOURCE_PARALLELISM(c, 8) */ 1 FROM a, d.b", ["APH310 c"]),
    ("SELECT /*+ SOURCE_PARALLELISM(orders, 8) */ 1 FROM order", ["APH310 orders"]),
    ("SELECT /*+ SOURCE_PARALLELISM(a, 8) */ 1 FROM a AS b", ["APH310 a"]),
    ("SELECT /*+ SOURCE_PARALLELISM(x.b, 8) */ 1 FROM d.b", ["APH310 x.b"]),
    ("SELECT /*+ SOURCE_PARALLELISM(d.b, 8) */ 1 FROM b, e.b", []),
    ("SELECT /*+ SOURCE_PARALLELISM(c.d.b, 8) */ 1 FROM d.B", []),
    ("SELECT /*+ SOURCE_PARALLELISM(d.b, 8) */ 1 FROM d.b AS b", ["APH310 d.b"]),
    ("SELECT /*+ SOURCE_PARALLELISM(a, 8) */ 1 FROM STREAM(a)", []),
    ("SELECT /*+ SOURCE_PARALLELISM(a, 8) */ 1 FROM STREAM(a) AS b", ["APH310 a"]),
    (
        "WITH b AS (SELECT 1) SELECT /*+ SOURCE_PARALLELISM(d.b, 8) */ 1 FROM b",
        ["APH310 d.b"],
    ),
    ("SELECT /*+ SOURCE_PARALLELISM(a, 8) */ (SELECT 1 FROM a)", ["APH310 a"]),
    ("SELECT (SELECT /*+ SOURCE_PARALLELISM(a, 8) */ 1 FROM b) FROM a", ["APH310 a"]),
    ("WITH a AS (SELECT 1) SELECT /*+ SOURCE_PARALLELISM(a, 8) */ 1 FROM b", ["APH310 a"]),
    ("INSERT INTO a SELECT /*+ SOURCE_PARALLELISM(a, 8) */ 1 FROM b", ["APH310 a"]),
    # Hints that appear twice.
    ("SELECT /*+ PARALLELISM(4), PARALLELISM(8) */ 1", ["APH311 PARALLELISM(8)"]),
    ("SELECT /*+ PARALLELISM(4), parallelism(1, 8) */ 1", ["APH311 parallelism(1, 8)"]),
    ("SELECT /*+ PARALLELISM(0), PARALLELISM(8) */ 1", ["APH303 0"]),
    (
        "SELECT /*+ PARALLELISM(4) */ /*+ PARALLELISM(8) */ 1",
        ["APH103 /*+ PARALLELISM(8) */", "APH311 PARALLELISM(8)"],
    ),
    (
        "SELECT /*+ SOURCE_PARALLELISM(a, 2), SOURCE_PARALLELISM(A, 4) */ 1 FROM a",
        ["APH311 SOURCE_PARALLELISM(A, 4)"],
    ),
    # Spark's own hints.
    ("SELECT /*+ SLOTS(1, 2) */ 1", ["APH301 SLOTS(1, 2)"]),
    ("SELECT /*+ SLOTS(-1, 2, 3) */ 1", ["APH303 -1"]),
    ("SELECT /*+ SLOTS(1, 0, 3) */ 1", ["APH303 0"]),
    ("SELECT /*+ SLOTS(4, 2, 3) */ 1", ["APH304 SLOTS(4, 2, 3)"]),
    ("SELECT /*+ SLOTS(1, 4, 3) */ 1", ["APH304 SLOTS(1, 4, 3)"]),
    ("SELECT /*+ FINISH_WITHIN(10) */ 1", ["APH312 10"]),
    ("SELECT /*+ FINISH_WITHIN(10min) */ 1", ["APH312 10min"]),
    ("SELECT /*+ FINISH_WITHIN('10 weeks') */ 1", ["APH312 '10 weeks'"]),
    ("SELECT /*+ FINISH_WITHIN('400 days') */ 1", ["APH312 '400 days'"]),
    (
        "SELECT 1 FROM (SELECT /*+ FINISH_WITHIN('1 h') */ 1)",
        ["APH313 FINISH_WITHIN('1 h')"],
    ),
    (
        "WITH a AS (SELECT /*+ FINISH_WITHIN('1 h') */ 1) SELECT 1 FROM a",
        ["APH313 FINISH_WITHIN('1 h')"],
    ),
    (
        "SELECT /*+ FINISH_WITHIN('1 h') */ 1 UNION ALL SELECT 2",
        ["APH313 FINISH_WITHIN('1 h')"],
    ),
    (
        "SELECT 1 EXCEPT (SELECT /*+ FINISH_WITHIN('1 h') */ 2) ORDER BY 1",
        ["APH313 FINISH_WITHIN('1 h')"],
    ),
    (
        "SELECT /*+ PARALLELISM(4, 16) */ 1 FROM (SELECT /*+ PARALLELISM(64) */ 1)",
        ["APH316 PARALLELISM(64)"],
    ),
    (
        "SELECT /*+ PARALLELISM(4, 16) */ (SELECT (SELECT /*+ PARALLELISM(1, 2) */ 1))",
        ["APH316 PARALLELISM(1, 2)"],
    ),
    (
        "WITH a AS (SELECT /*+ PARALLELISM(64) */ 1) SELECT /*+ PARALLELISM(4, 16) */ 1 FROM a",
        ["APH316 PARALLELISM(64)"],
    ),
    ("SELECT /*+ COALESCE */ 1", ["APH401 COALESCE"]),
    ("SELECT /*+ COALESCE(a) */ 1", ["APH401 COALESCE(a)"]),
    ("SELECT /*+ COALESCE(4, a) */ 1", ["APH401 COALESCE(4, a)"]),
    ("SELECT /*+ COALESCE(0) */ 1", ["APH401 0"]),
    ("SELECT /*+ REPARTITION(0) */ 1", ["APH401 0"]),
    ("SELECT /*+ REPARTITION(4L) */ 1", ["APH401 4L"]),
    ("SELECT /*+ REPARTITION(a, 4) */ 1", ["APH401 4"]),
    ("SELECT /*+ REPARTITION(f(a)) */ 1", ["APH401 f(a)"]),
    ("SELECT /*+ REPARTITION_BY_RANGE(0, a) */ 1", ["APH401 0"]),
    ("SELECT /*+ REBALANCE(a, -1) */ 1", ["APH401 -1"]),
    ("SELECT /*+ REPARTITION(2147483648) */ 1", ["APH401 2147483648"]),
    ("SELECT /*+ BROADCAST(4) */ 1 FROM a JOIN b", ["APH401 4"]),
    ("SELECT /*+ BROADCAST(c) */ 1 FROM a JOIN b", ["APH402 c"]),
    ("SELECT /*+ BROADCAST(a.b.c) */ 1 FROM a JOIN b", ["APH402 a.b.c"]),
    ("SELECT /*+ MERGE(a) */ 1 FROM a x JOIN b", ["APH402 a"]),
    ("SELECT /*+ BROADCAST(b) */ 1 FROM a WHERE c IN (SELECT 1 FROM b)", ["APH402 b"]),
    ("SELECT /*+ BROADCAST(b) */ 1 FROM a JOIN (SELECT 1 FROM b) c", ["APH402 b"]),
    ("SELECT /*+ BROADCAST(b) */ 1 FROM (a JOIN b) c JOIN d", ["APH402 b"]),
    ("SELECT /*+ BROADCAST(b) */ 1 FROM a LATERAL VIEW explode(c) AS b", ["APH402 b"]),
    ("SELECT /*+ BROADCAST(a), MERGE(a) */ 1 FROM a JOIN b JOIN c", ["APH403 a"]),
    ("SELECT /*+ MERGE(a), BROADCAST(a, b) */ 1 FROM a JOIN b JOIN c", ["APH403 a"]),
    ("SELECT /*+ MERGE(a), BROADCAST(b) */ 1 FROM a JOIN b", ["APH403 MERGE(a)"]),
    (
        "SELECT /*+ SHUFFLE_HASH(a), SHUFFLE_REPLICATE_NL(b) */ 1 FROM a JOIN b",
        ["APH403 SHUFFLE_REPLICATE_NL(b)"],
    ),
    ("SELECT /*+ BROADCAST(a) */ 1 FROM a", ["APH404 BROADCAST(a)"]),
    (
        "SELECT /*+ BROADCAST(a) */ 1 FROM a WHERE b IN (SELECT 1 FROM c)",
        ["APH404 BROADCAST(a)"],
    ),
    ("SELECT /*+ BROADCAST */ 1 FROM a JOIN b", ["APH404 BROADCAST"]),
    ("SELECT /*+ MERGE(a) */ 1 FROM a UNION SELECT 2", ["APH404 MERGE(a)"]),
    (
        "WITH c AS (SELECT /*+ BROADCAST(a) */ 1 FROM a) SELECT 1 FROM c JOIN b",
        ["APH404 BROADCAST(a)"],
    ),
    ("SELECT /*+ REPARTITION(4), REPARTITION(8) */ 1", ["APH405 REPARTITION(8)"]),
    ("SELECT /*+ REPARTITION(4), COALESCE(2) */ 1", ["APH405 COALESCE(2)"]),
    ("SELECT /*+ COALESCE(2), COALESCE(4) */ 1", ["APH405 COALESCE(4)"]),
    ("SELECT /*+ REBALANCE(4), REPARTITION(8, a) */ 1", ["APH405 REPARTITION(8, a)"]),
    ("SELECT /*+ COALESCE(2), REPARTITION(8), COALESCE(3) */ 1", ["APH405 COALESCE(3)"]),
]

# What cannot be read spoils its own statement only.
FINDINGS_IN_BROKEN_TEXTS = [
    (
        "SELECT /*+ RANGES(8) */ 'a;\nSELECT /*+ RANGES(9) */ 'b'",
        ["APH001 '", "APH308 8", "APH308 9"],
    ),
    ("SELECT 'a;\nSELECT 'b';\nSELECT /*+ RANGES(9) */ 'c'", ["APH308 9"]),
    ("SELECT (1; SELECT /*+ RANGES(even), RANGES(even) */ 1", ["APH311 RANGES(even)"]),
    (
        "SELECT /*+ RANGES(8); SELECT /*+ RANGES(even)",
        ["APH001 /*+", "APH001 /*+"],
    ),
    ("SELECT `a;\nSELECT /*+ RANGES(9) */ 1", ["APH308 9"]),
    (
        "BEGIN SELECT /*+ RANGES(9) */ 1; IF (1 THEN SELECT /*+ RANGES(7) */ 1; END IF; END",
        ["APH308 9", "APH308 7"],
    ),
]

CLEAN = [
    "",
    "SELECT 1",
    "SET a = b; ANALYZE TABLE t COMPUTE STATISTICS",
    "SELECT /*+ PARALLELISM(1) */ 1",
    "SELECT /*+ PARALLELISM(2147483647) */ 1",
    "SELECT /*+ parallelism(3, 5) */ 1",
    "SELECT /*+ PARALLELISM(1, 2147483647) */ 1",
    "SELECT /*+ DATA_VOLUME('256MB') */ 1",
    "SELECT /*+ DATA_VOLUME(' 64 mib ') */ 1",
    "SELECT /*+ DATA_VOLUME('1b') */ 1",
    "SELECT /*+ DATA_VOLUME('8191pb') */ 1",
    "SELECT /*+ DATA_VOLUME('25' \"6k\") */ 1",
    "SELECT /*+ DATA_VOLUME(268435456) */ 1",
    "SELECT /*+ DATA_VOLUME(268435456L) */ 1",
    "SELECT /*+ BROADCAST_RATIO(0.3) */ 1",
    "SELECT /*+ BROADCAST_RATIO(.999D) */ 1",
    "SELECT /*+ BROADCAST_RATIO(1e-3) */ 1",
    "SELECT /*+ RANGES(even) */ 1",
    "SELECT /*+ RANGES('Balanced') */ 1",
    "SELECT /*+ PARALLELISM(4, 16) */ 1 FROM (SELECT /*+ PARALLELISM(8, 64) */ 1)",
    "SELECT /*+ PARALLELISM(4) */ 1 FROM (SELECT /*+ PARALLELISM(8) */ 1)",
    "SELECT /*+ PARALLELISM(4, 16) */ 1 FROM (SELECT /*+ PARALLELISM({{ n }}) */ 1)",
    "SELECT /*+ `RANGES`(`even`) */ 1",
    "SELECT /*+ SLOTS(0, 1, 2147483647) */ 1",
    "SELECT /*+ FINISH_WITHIN('10 min') */ 1",
    "SELECT /*+ FINISH_WITHIN(' 2HOURS ') */ 1 FROM (SELECT 1)",
    "INSERT INTO a SELECT /*+ FINISH_WITHIN('365 d') */ 1",
    "SELECT /*+ SOURCE_PARALLELISM(16) */ 1",
    "SELECT /*+ SOURCE_PARALLELISM(b, 1), SOURCE_PARALLELISM('d.e', 2) */ 1 FROM a b, c.d.e",
    "SELECT /*+ SOURCE_PARALLELISM(`a b`, 1) */ 1 FROM d.`A B`",
    "SELECT /*+ SOURCE_PARALLELISM(s, 1) */ 1 FROM (SELECT 1) s",
    "SELECT /*+ SOURCE_PARALLELISM(d.0xff, 1) */ 1 FROM d.0xff",
    "SELECT /*+ SOURCE_PARALLELISM(a, 1) */ 1 FROM (b JOIN a)",
    "FROM a |> JOIN b |> SELECT /*+ SOURCE_PARALLELISM(b, 1), BROADCAST(a) */ 1",
    "FROM a SELECT /*+ SOURCE_PARALLELISM(a, 1) */ 1",
    "EXPLAIN SELECT /*+ SOURCE_PARALLELISM(a, 1) */ 1 FROM a",
    "SELECT /*+ PARALLELISM(:n), DATA_VOLUME(?) */ 1",
    "SELECT /*+ PARALLELISM({{ n }}), {{ hint }} */ 1",
    "SELECT /*+ SOURCE_PARALLELISM(a, ${n}), BROADCAST(a) */ 1 FROM {{ ref('a') }}",
    "SELECT /*+ PARALLELISM(/* eight */ 8) -- tasks\n */ 1",
    "SELECT /* why */ -- so\n /*+ PARALLELISM(8) */ DISTINCT a FROM b",
    "SELECT '/*+ PARALELISM(8) */', `--+ MERGE(a)` FROM b -- not /*+ FOO */",
    "SELECT /*+ REPARTITION */ 1",
    "SELECT /*+ REPARTITION(4, a, 'b', c.d) */ 1",
    "SELECT /*+ REPARTITION_BY_RANGE(a), BROADCAST(a) */ 1 FROM a JOIN b",
    "SELECT /*+ REBALANCE(4S) */ 1",
    "SELECT /*+ COALESCE(4) */ 1",
    "SELECT /*+ COALESCE(2), REPARTITION(8) */ 1",
    "SELECT /*+ BROADCAST(a, 'd.b') */ 1 FROM a JOIN d.b",
    "SELECT /*+ BROADCAST(a), MAPJOIN(a) */ 1 FROM a, b",
    "SELECT /*+ MERGE(r) */ 1 FROM a JOIN range(5) r",
    "SELECT 1 FROM a JOIN (SELECT /*+ BROADCAST */ 1 FROM b) s",
    "SELECT /*+ BROADCAST */ 1 FROM a |> JOIN b",
    "MERGE INTO a USING (SELECT /*+ BROADCAST */ 1) s ON b WHEN MATCHED THEN DELETE",
    "CREATE VIEW v AS SELECT /*+ BROADCAST(a) */ 1 FROM a",
    "SELECT transform(a, x -> x + 1) FROM b",
    "SELECT /*+ RANGES(even) */ transform(a, x -> x + 1) FROM b",
]


# Texts that not every version of Spark can read, and no version of some other parsers.
CLEAN_FOR_SOME_VERSIONS = [
    # Statements without hints have no findings, even if Spark cannot read them.
    "SELECT 'a",
    "SELECT (1",
    "SELECT a FROM WHERE WHERE",
    # Tables that sqlglot cannot read are not known, and that is no finding.
    "SELECT /*+ BROADCAST(a) */ a FROM WHERE WHERE",
    "SELECT /*+ SOURCE_PARALLELISM(z, 8) */ a FROM b c d",
    "FROM b c d |> SELECT /*+ MERGE(z) */ a |> SELECT /*+ MERGE(z) */ a",
    "SELECT 1; BEGIN SELECT 2",
    # Statements of Spark that other parsers do not know.
    "INSERT OVERWRITE DIRECTORY '/x' USING parquet SELECT /*+ BROADCAST(t) */ 1 FROM t JOIN u",
    "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT /*+ BROADCAST */ 1 FROM a) s ON b",
    "WITH RECURSIVE t(n) MAX RECURSION LEVEL 9 AS (SELECT 1) SELECT /*+ MERGE(t) */ 1 FROM t, u",
    "SELECT /*+ BROADCAST(u) */ * FROM f(TABLE(t) PARTITION BY a) JOIN u",
    "FROM t |> JOIN u |> SET s = 1 |> DROP c |> SELECT /*+ BROADCAST(u) */ 1",
    "TABLE t |> JOIN u |> SELECT /*+ BROADCAST(t) */ 1",
    "SELECT /*+ BROADCAST(u) */ v:a.b[0]::int FROM t JOIN u",
    "GRANT SELECT ON TABLE t TO u; REPAIR TABLE t; RESET spark.x",
    "SELECT /*+ SOURCE_PARALLELISM(t, 2) */ 1 FROM IDENTIFIER('t')",
    "SELECT /*+ BROADCAST(t) */ 1 FROM t TIMESTAMP AS OF now() JOIN u VERSION AS OF 3",
    "SELECT /*+ BROADCAST(t), BROADCAST(p) */ 1 FROM a t JOIN u PIVOT (sum(b) FOR c IN (1)) p",
    "BEGIN FOR r AS SELECT /*+ BROADCAST(t) */ 1 FROM t JOIN u DO SELECT r.a; END FOR; END",
    "a: BEGIN DECLARE EXIT HANDLER FOR NOT FOUND SELECT /*+ RANGES(even) */ 1; END a",
]


@pytest.mark.parametrize(("sql", "expected"), [*FINDINGS, *FINDINGS_IN_BROKEN_TEXTS])
def test_wrong_hints_are_found(sql: str, expected: list[str]) -> None:
    findings = lint(sql)
    parts = [f"{f.code} {sql[f.offset : f.offset + f.length]}" for f in findings]
    assert sorted(parts) == sorted(expected)
    assert [f.offset for f in findings] == sorted(f.offset for f in findings)
    assert all(f.severity == CODES[f.code][0] for f in findings)


@pytest.mark.parametrize("ratio", ["2", "30"])
def test_no_ratio_is_guessed_for_one_above_1(ratio: str) -> None:
    (finding,) = lint(f"SELECT /*+ BROADCAST_RATIO({ratio}) */ 1")
    assert finding.suggestion is None


@pytest.mark.parametrize("sql", [*CLEAN, *CLEAN_FOR_SOME_VERSIONS])
def test_right_hints_have_no_findings(sql: str) -> None:
    assert lint(sql) == []


def test_every_code_has_a_case() -> None:
    cases = [*FINDINGS, *test_schema.FINDINGS]
    assert {part.split()[0] for _, expected in cases for part in expected} == CODES.keys()


def test_every_example_of_the_grammar_is_valid() -> None:
    for forms in APPORTION.values():
        for form in forms:
            assert lint(f"SELECT /*+ {form.example} */ 1 FROM t") == []


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("SELECT /*+ FOO */ 1", 1, 12),
        ("SELECT\n /*+ FOO */ 1", 2, 6),
        ("SELECT\r\n\t/*+ FOO */ 1", 2, 6),
        ("SELECT\r /*+ FOO */ 1", 2, 6),
        ("SELECT '\U0001f600' AS `日本`, (SELECT /*+ FOO */ 1)", 1, 33),
        ("SELECT 1;\n\nSELECT /*+ FOO */ 2", 3, 12),
    ],
)
def test_lines_and_columns_count_characters_from_1(sql: str, line: int, column: int) -> None:
    (finding,) = lint(sql)
    assert (finding.line, finding.column) == (line, column)


# Texts whose hints sqlglot would lose or misread.


def test_a_second_hint_comment_is_not_lost() -> None:
    sql = "SELECT /*+ RANGES(even) */ /*+ PARALLELISM(8) */ 1"
    assert show(sql)[0].own == ("RANGES(even)", "PARALLELISM(8)")
    assert add(sql, "DATA_VOLUME('1gb')") == (
        "SELECT /*+ RANGES(even), DATA_VOLUME('1gb') */ /*+ PARALLELISM(8) */ 1"
    )


def test_a_missing_comma_is_found_at_the_second_argument() -> None:
    sql = "SELECT /*+ SOURCE_PARALLELISM(t 8), PARALLELISM(0) */ 1 FROM t"
    assert [(f.code, f.column) for f in lint(sql)] == [("APH104", 33), ("APH303", 49)]


def test_names_keep_their_case() -> None:
    sql = "select /*+ parallelism(4) */ A, b from T"
    assert show(sql)[0].own == ("parallelism(4)",)
    assert add(sql, "ranges(even)") == "select /*+ parallelism(4), ranges(even) */ A, b from T"


def test_a_join_without_a_condition_is_unchanged() -> None:
    sql = "SELECT * FROM a JOIN b"
    assert add(sql, "PARALLELISM(8)") == "SELECT /*+ PARALLELISM(8) */ * FROM a JOIN b"


def test_hints_of_pipes_and_strings_with_comment_ends_are_read() -> None:
    sql = "FROM a |> SELECT /*+ FOO('*/'), PARALLELISM(8) */ b"
    assert show(sql)[0].own == ("PARALLELISM(8)",)


def test_tpc_queries_have_no_findings_with_and_without_hints() -> None:
    texts = [*tpc.queries("tpch").values(), *tpc.queries("tpcds").values()]
    assert len(texts) == 121
    for text in texts:
        assert lint(text) == []
        assert lint(add(text, "PARALLELISM(4, 64)")) == []


GOLDEN = Path(__file__).with_name("messages.golden.txt")
# The messages of HintGrammar.scala, written by WrongHintsSuite.scala.
SCALA_GOLDEN = Path(__file__).parents[3] / "jvm/src/test/resources/wrong_hints.golden.txt"


def test_messages_are_in_the_golden_file(request: pytest.FixtureRequest) -> None:
    """Compare every message with the golden file. `--apportion-update-golden` writes the file."""
    messages = "\n".join(_messages())
    if request.config.getoption("--apportion-update-golden", default=False):
        GOLDEN.write_text(messages, "utf-8")
    assert messages == GOLDEN.read_text("utf-8")


def _messages() -> Iterator[str]:
    for sql, _ in FINDINGS:
        if len(sql) < 200:
            yield f"lint {sql!r}"
            for finding in lint(sql):
                yield f"  {finding.line}:{finding.column} {finding.severity} {finding.code}"
                yield f"    {finding.message}"
                yield from [f"    = {finding.suggestion}"] if finding.suggestion else []
    for sql, hint, block in test_rewrite.ERRORS:
        yield f"add {sql!r}, {hint!r}, {block!r}"
        with pytest.raises(HintError) as refused:
            add(sql, hint, block)
        yield f"  {refused.value}"
    for sql in test_show.ERRORS:
        yield f"show {sql!r}"
        with pytest.raises(HintError) as refused:
            show(sql)
        yield f"  {refused.value}"
    yield ""


def _read_scala_messages() -> Iterator[tuple[str, str, str]]:
    """Yield the hint, the code and the message of each case of the Scala side."""
    lines = SCALA_GOLDEN.read_text("utf-8").splitlines()
    for hint, error in zip(lines[::2], lines[1::2], strict=True):
        match = re.fullmatch(
            r"  \[APPORTION_INVALID_HINT\.(\w+)\] Hint .* at line \d+, column \d+: "
            r"(.*?)\.( Did you mean .*\?| Write .*\.)?",
            error,
        )
        assert match, error
        yield hint, match[1], match[2]


SCALA_MESSAGES = list(_read_scala_messages())


@pytest.mark.parametrize(("hint", "code", "message"), SCALA_MESSAGES)
def test_the_linter_has_the_messages_of_the_extension(hint: str, code: str, message: str) -> None:
    # The query of WrongHintsSuite.
    sql = f"SELECT 1,\n (SELECT /*+ {hint} */ count(*)\n FROM numbers n) AS c"
    first = lint(sql)[0]
    # The linter adds the consequence to some messages.
    assert (first.code, first.message[: len(message)]) == (code, message)


def test_the_extension_has_a_message_for_every_hint() -> None:
    assert {hint.partition("(")[0] for hint, _, _ in SCALA_MESSAGES} >= APPORTION.keys()

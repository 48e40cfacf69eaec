package io.apportion.history

import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

/** Which parts of paths count as literals. */
class SourcePathSuite extends AnyFunSuite {
  private val alike = Table(
    ("one path", "another", "name"),
    ("/events/dt=2026-11-22", "/events/dt=2026-11-23", "/events/dt=*"),
    ("/events/year=2026/month=9/day=3", "/events/year=2027/month=10/day=21", "/events/year=*/month=*/day=*"),
    ("/events/2026/11/22/07/x.json", "/events/2025/1/2/23/x.json", "/events/*/*/*/*/x.json"),
    ("s3a://logs/2026-11/22", "s3a://logs/2026-12/1", "s3a://logs/*/*"),
    ("/events/20261122", "/events/20261123", "/events/*"),
    ("/events/20261122T101500Z", "/events/20261123T000000Z", "/events/*"),
    ("/events_20261122/part.csv", "/events_20261123/part.csv", "/events_*/part.csv"),
    ("/in/events-2026-11-22.csv", "/in/events-2026-11-23.csv", "/in/events-*.csv"),
    (
      "/out/scheduled__2026-11-22T00:00:00+00:00",
      "/out/scheduled__2026-11-23T01:30:00+00:00",
      "/out/scheduled__*"
    ),
    ("/out/run_17/x", "/out/run_18/x", "/out/*/x"),
    ("/out/1763800000/x", "/out/1763900000/x", "/out/*/x"),
    (
      "/out/0b8e4f0e-3d3b-4c52-9b1c-6d2a4a3f1e77/x",
      "/out/1c8e4f0e-3d3b-4c52-9b1c-6d2a4a3f1e78/x",
      "/out/*/x"
    )
  )
  forAll(alike) { (one, other, name) =>
    test(s"$one is named like $other") {
      assert(Seq(one, other).map(SourcePath.of(_).name) == Seq(name, name))
      assert(SourcePath.of(one).values != SourcePath.of(other).values)
    }
  }

  private val different = Table(
    ("one path", "another"),
    ("/data/orders", "/data/lines"),
    ("/data/table1", "/data/table2"),
    ("/data/v1/orders", "/data/v2/orders"),
    ("/data/100/orders", "/data/1000/orders"),
    ("/tpch/sf10/orders", "/tpch/sf100/orders"),
    ("/data/11/orders", "/data/12/orders"),
    ("/events_20261122/x", "/clicks_20261122/x"),
    ("/a/dt=2026-11-22", "/b/dt=2026-11-22"),
    ("/a/dt=2026-11-22", "/a/day=2026-11-22"),
    ("/a/20269922", "/a/20269923"),
    ("/u/tables/0b8e4f0e-3d3b-4c52-9b1c-6d2a4a3f1e77", "/u/tables/1c8e4f0e-3d3b-4c52-9b1c-6d2a4a3f1e78")
  )
  forAll(different) { (one, other) =>
    test(s"$one is not named like $other")(assert(SourcePath.of(one).name != SourcePath.of(other).name))
  }

  test("several directories of one kind have one name") {
    val week = SourcePath.of((10 to 16).map(day => s"/events/dt=2026-11-$day"))
    assert(week.name == "/events/dt=*" && week.values.size == 7)
    assert(SourcePath.of(Seq("/b", "/a")) == SourcePath("/a /b", Nil))
  }
}

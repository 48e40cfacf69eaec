package io.apportion.reads

import org.apache.spark.sql.execution.{CoalescedMapperPartitionSpec, PartialMapperPartitionSpec}
import org.scalacheck.{Gen, Properties}
import org.scalacheck.Prop.forAll

object LocalReadsProperties extends Properties("LocalReads.divide") {
  private val shapes = for {
    mapTasks <- Gen.choose(1, 20)
    subpartitions <- Gen.choose(1, 40)
    tasks <- Gen.choose(1, subpartitions)
  } yield (mapTasks, subpartitions, tasks)

  property("there are as many reads as tasks, and together they read every block once") = forAll(shapes) {
    case (mapTasks, subpartitions, tasks) =>
      val specs = LocalReads.divide(mapTasks, subpartitions, tasks)
      val blocks = specs.flatMap {
        case CoalescedMapperPartitionSpec(start, end, n) =>
          for (map <- start until end; block <- 0 until n) yield (map, block)
        case PartialMapperPartitionSpec(map, start, end) => (start until end).map(map -> _)
        case other                                       => throw new IllegalArgumentException(other.toString)
      }
      specs.size == tasks && blocks == (for (map <- 0 until mapTasks; block <- 0 until subpartitions)
        yield (map, block))
  }
}

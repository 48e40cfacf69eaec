package io.apportion.decision.ranges

import org.scalacheck.{Gen, Properties}
import org.scalacheck.Prop.forAll

object PartitionTreeProperties extends Properties("PartitionTree") {

  private val trees: Gen[PartitionTree] = for {
    first <- Gen.choose(1, 6)
    parts <- Gen.choose(0, 4).flatMap(Gen.listOfN(_, Gen.choose(2, 4)))
  } yield PartitionTree(parts.scanLeft(first)(_ * _): _*)

  private val treesWithRange: Gen[(PartitionTree, Int, Int)] = for {
    tree <- trees
    from <- Gen.choose(0, tree.partitions - 1)
    until <- Gen.choose(from + 1, tree.partitions)
  } yield (tree, from, until)

  private def partitionsOf(tree: PartitionTree, block: Int): Range =
    tree.start(block) until tree.start(block) + tree.width(tree.level(block))

  property("each group of each level has a block of its own") = forAll(trees) { tree =>
    val blocks =
      for (level <- tree.groups.indices; group <- 0 until tree.groups(level))
        yield tree.blockOf(level, group * tree.width(level))
    blocks.sorted == (0 until tree.blocks)
  }

  property("the blocks of a group's parts follow its own") = forAll(trees) { tree =>
    (0 until tree.blocks).forall { block =>
      (block until block + tree.subtree(tree.level(block)))
        .forall(partitionsOf(tree, _).forall(partitionsOf(tree, block).contains))
    }
  }

  property("a task reads each block that can hold its rows once, and no other") = forAll(treesWithRange) {
    case (tree, from, until) =>
      val read = tree.runs(from, until).flatMap(run => run.start until run.end)
      read == (0 until tree.blocks).filter(partitionsOf(tree, _).exists(i => i >= from && i < until))
  }

  property("exactly the blocks with rows of other tasks are shared") = forAll(treesWithRange) {
    case (tree, from, until) =>
      tree.runs(from, until).forall { run =>
        (run.start until run.end)
          .forall(block => run.isShared != partitionsOf(tree, block).forall(i => i >= from && i < until))
      }
  }

  property("any number of partitions makes a tree with the groups that tasks need") =
    forAll(Gen.choose(1, 20000), Gen.choose(0, 6)) { (partitions, log) =>
      val tree = TreeLevels.tree(partitions, 1 << log)
      tree.partitions == partitions && tree.groups(0) >= (1 << log).min(partitions)
    }

  property("groups have few parts if the number of partitions has small factors") =
    forAll(Gen.choose(1, 7), Gen.choose(0, 3), Gen.choose(0, 3)) { (twos, threes, fives) =>
      val groups = TreeLevels.tree((math.pow(2, twos) * math.pow(3, threes) * math.pow(5, fives)).toInt).groups
      groups.zip(groups.drop(1)).forall { case (coarse, fine) => fine < 64 * coarse }
    }

  property("tasks that fit the groups share no block") = forAll(Gen.choose(0, 12), Gen.choose(0, 4)) { (n, coarser) =>
    val tree = TreeLevels.tree(1 << n)
    val tasks = 1 << coarser.min(n)
    tasks > tree.groups(0) || Ranges.even(tree.partitions, tasks).toSeq.forall { case (from, until) =>
      !tree.runs(from, until).exists(_.isShared)
    }
  }

  property("amounts of blocks are spread evenly over their partitions, and none of these is empty") =
    forAll(trees, Gen.choose(0L, 1000000L)) { (tree, amount) =>
      val amounts = Array.tabulate(tree.blocks)(block => if (block % 3 == 0) amount else 0L)
      val spread = tree.spread(amounts)
      (0 until tree.partitions).forall { i =>
        val above = tree.blocksOf(i).map { case (block, parts) => amounts(block).toDouble / parts }.sum
        (above == 0) == (spread(i) == 0) && math.abs(spread(i) - above) <= tree.groups.length
      }
    }

  private val treesWithBytes: Gen[(PartitionTree, Array[Long])] = for {
    tree <- trees
    bytes <- Gen.listOfN(tree.blocks, Gen.frequency(2 -> Gen.const(0L), 1 -> Gen.choose(0L, 1000000L)))
  } yield (tree, bytes.toArray)

  property("the bytes of all partitions are those of all blocks, up to rounding") = forAll(treesWithBytes) {
    case (tree, bytes) => math.abs(tree.partitionBytes(bytes).sum - bytes.sum) <= tree.partitions
  }

  property("exactly the partitions that may have rows have bytes") = forAll(treesWithBytes) { case (tree, bytes) =>
    val ofPartitions = tree.partitionBytes(bytes)
    (0 until tree.partitions).forall { i =>
      tree.blocksOf(i).exists { case (block, _) => bytes(block) > 0 } == (ofPartitions(i) > 0)
    }
  }

  property("the bytes of a group are those of its parts, also if a part has little more than one byte") =
    forAll(Gen.choose(64L, 1000L)) { bytes =>
      PartitionTree(1, 64).partitionBytes(Array.fill(65)(0L).updated(0, bytes)).sum == bytes
    }

  property("a partition has at least the bytes that only it can have") = forAll(treesWithBytes) { case (tree, bytes) =>
    val ofPartitions = tree.partitionBytes(bytes)
    (0 until tree.partitions).forall(i => ofPartitions(i) >= bytes(tree.blockOf(tree.depth, i)))
  }

  property("the parts of a group that was divided have the same shares of the rows before and after") =
    forAll(Gen.choose(1L, 1000L), Gen.choose(0L, 1000L), Gen.choose(1L, 1000L)) { (before, one, other) =>
      val tree = PartitionTree(1, 2)
      tree.partitionBytes(Array(before, one, other)).toSeq.zip(Seq(one, other)).forall { case (bytes, after) =>
        math.abs(bytes - after.toDouble * (before + one + other) / (one + other)) <= 1
      }
    }

  property("the parts of a group that was never divided are equal up to rounding, and not empty") =
    forAll(trees, Gen.choose(1L, 1000000L)) { (tree, amount) =>
      val bytes = tree.partitionBytes(Array.tabulate(tree.blocks)(block => if (tree.level(block) == 0) amount else 0L))
      bytes.forall(_ > 0) && bytes.max - bytes.min <= 1
    }
}

package io.apportion.decision.ranges

import java.util.{Arrays, Random, SplittableRandom}

import org.scalacheck.{Gen, Properties, Test}
import org.scalacheck.Prop.forAll

object BlockChooserProperties extends Properties("BlockChooser") {

  override def overrideParameters(p: Test.Parameters): Test.Parameters = p.withMinSuccessfulTests(5000)

  private val RowBytes = 10

  /**
   * The rows of each map task, as partitions: equal or skewed map outputs, uniform or skewed partitions, in any order or
   * one partition after the other.
   *
   * @param kept number of rows that a map task keeps before it chooses their blocks
   */
  private final case class Shuffle(tree: PartitionTree, startLevel: Int, rows: Seq[Array[Int]], kept: Int)

  private val shuffles: Gen[Shuffle] = for {
    partitions <- Gen.oneOf(Gen.choose(4, 9).map(1 << _), Gen.choose(16, 600))
    mapTasks <- Gen.choose(1, 20)
    seed <- Gen.long
    spread <- Gen.oneOf(0.0, 1.0, 3.0)
    isSkewed <- Gen.oneOf(false, true)
    level <- Gen.choose(0, 2)
    likely <- Gen.choose(0, 7)
    kept <- Gen.oneOf(1, 50, 500, 5000)
    isClustered <- Gen.oneOf(false, true)
  } yield {
    val random = new SplittableRandom(seed)
    val sizes = new Random(seed)
    val tree = TreeLevels.tree(partitions, likely = 1 << likely)
    val rows = Seq.fill(mapTasks) {
      val size = (200 * math.exp(spread * sizes.nextGaussian())).toInt.min(20000)
      val partitions = Array.fill(size) {
        val place = random.nextDouble()
        ((if (isSkewed) place * place * place else place) * tree.partitions).toInt
      }
      if (isClustered) Arrays.sort(partitions)
      partitions
    }
    Shuffle(tree, level.min(tree.depth), rows, kept)
  }

  /** Blocks of the rows of all map tasks, if the tasks that read them should read `target` bytes. */
  private def written(shuffle: Shuffle, target: Long): Seq[Array[Int]] = shuffle.rows.map { rows =>
    val shares = shuffle.tree.groups.map(_ => target / shuffle.rows.size)
    val chooser = new BlockChooser(shuffle.tree, shuffle.startLevel, shares, Long.MaxValue)
    val (first, next) = rows.splitAt(shuffle.kept)
    chooser.place(first, first.map(_ => RowBytes), isAll = next.isEmpty) ++ next.map(chooser.choose(_, RowBytes))
  }

  property("a row's block belongs to a group with the row's partition") = forAll(shuffles, Gen.choose(10L, 100000L)) {
    (shuffle, target) =>
      val tree = shuffle.tree
      shuffle.rows.zip(written(shuffle, target)).forall { case (partitions, blocks) =>
        partitions.indices.forall(i => tree.blockOf(tree.level(blocks(i)), partitions(i)) == blocks(i))
      }
  }

  property("tasks read at most a quarter of all bytes twice, whatever the skew and the level at the start") =
    forAll(shuffles, Gen.choose(0, 6)) { (shuffle, log) =>
      val tree = shuffle.tree
      val tasks = (1 << log).min(tree.partitions)
      val total = shuffle.rows.map(_.length).sum.toLong * RowBytes
      val blocks = new Array[Long](tree.blocks)
      written(shuffle, (total / tasks).max(1)).foreach(_.foreach(block => blocks(block) += RowBytes))
      tree.readTwice(blocks, Ranges.even(tree.partitions, tasks)) <= total * PartitionTree.MaxReadTwice
    }

  property("few rows stay in the groups that a map task starts with") = forAll(shuffles) { shuffle =>
    written(shuffle, Long.MaxValue).forall { blocks =>
      val level = if (blocks.length <= shuffle.kept) 0 else shuffle.startLevel
      val isLarge = blocks.length.min(shuffle.kept) * RowBytes >= BlockChooser.LargePartition
      isLarge || blocks.forall(shuffle.tree.level(_) == level)
    }
  }
}

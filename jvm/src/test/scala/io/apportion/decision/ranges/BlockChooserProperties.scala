package io.apportion.decision.ranges

import scala.util.Random

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
  private final case class Shuffle(tree: PartitionTree, startLevel: Int, rows: Seq[Seq[Int]], kept: Int)

  private val shuffles: Gen[Shuffle] = for {
    partitions <- Gen.oneOf(Gen.choose(4, 9).map(1 << _), Gen.choose(16, 600))
    mapTasks <- Gen.choose(1, 20)
    seed <- Gen.long
    spread <- Gen.oneOf(0.0, 1.0, 3.0)
    skew <- Gen.oneOf(1.0, 3.0)
    level <- Gen.choose(0, 2)
    likely <- Gen.choose(0, 7)
    kept <- Gen.oneOf(1, 50, 500, 5000)
    isClustered <- Gen.oneOf(false, true)
  } yield {
    val random = new Random(seed)
    val tree = TreeLevels.tree(partitions, likely = 1 << likely)
    val rows = Seq.fill(mapTasks) {
      val size = (200 * math.exp(spread * random.nextGaussian())).toInt.min(20000)
      val partitions = Seq.fill(size)((math.pow(random.nextDouble(), skew) * tree.partitions).toInt)
      if (isClustered) partitions.sorted else partitions
    }
    Shuffle(tree, level.min(tree.depth), rows, kept)
  }

  /** Blocks of the rows of all map tasks, if the tasks that read them should read `target` bytes. */
  private def written(shuffle: Shuffle, target: Long): Seq[Seq[(Int, Int)]] = shuffle.rows.map { rows =>
    val shares = shuffle.tree.groups.map(_ => target / shuffle.rows.size)
    val chooser = new BlockChooser(shuffle.tree, shuffle.startLevel, shares, Long.MaxValue)
    val (first, next) = rows.splitAt(shuffle.kept)
    val placed = chooser.place(first.toArray, first.map(_ => RowBytes).toArray, isAll = next.isEmpty)
    rows.zip(placed ++ next.map(chooser.choose(_, RowBytes)))
  }

  property("a row's block belongs to a group with the row's partition") = forAll(shuffles, Gen.choose(10L, 100000L)) {
    (shuffle, target) =>
      written(shuffle, target).flatten.forall { case (partition, block) =>
        shuffle.tree.blocksOf(partition).exists(_._1 == block)
      }
  }

  property("tasks read at most a quarter of all bytes twice, whatever the skew and the level at the start") =
    forAll(shuffles, Gen.choose(0, 6)) { (shuffle, log) =>
      val tree = shuffle.tree
      val tasks = (1 << log).min(tree.partitions)
      val total = shuffle.rows.map(_.size).sum.toLong * RowBytes
      val blocks = new Array[Long](tree.blocks)
      written(shuffle, (total / tasks).max(1)).flatten.foreach { case (_, block) => blocks(block) += RowBytes }
      tree.readTwice(blocks, Ranges.even(tree.partitions, tasks)) <= total * PartitionTree.MaxReadTwice
    }

  property("few rows stay in the groups that a map task starts with") = forAll(shuffles) { shuffle =>
    written(shuffle, Long.MaxValue).forall { rows =>
      val level = if (rows.size <= shuffle.kept) 0 else shuffle.startLevel
      rows.forall { case (_, block) => shuffle.tree.level(block) == level }
    }
  }
}

package io.apportion

import scala.collection.mutable
import scala.language.implicitConversions
import scala.util.Try

/** Collection methods of Scala 2.13 for Scala 2.12. The names are the same, so that both versions share the sources. */
trait Scala213 {
  import Scala213._

  implicit def scala213Options(options: Option.type): Options = new Options(options)
  implicit def scala213Texts(text: String): Texts = new Texts(text)
  implicit def scala213Traversed[C, A](all: C)(implicit traversable: C => TraversableOnce[A]): Traversed[A] =
    new Traversed(traversable(all))
  implicit def scala213Iterated[A](iterator: Iterator[A]): Iterated[A] = new Iterated(iterator)
  implicit def scala213Sequences[A](all: Seq[A]): Sequences[A] = new Sequences(all)
  implicit def scala213Maps[K, V](map: mutable.Map[K, V]): Maps[K, V] = new Maps(map)
}

object Scala213 {

  final class Options(private val options: Option.type) extends AnyVal {
    def when[A](condition: Boolean)(value: => A): Option[A] = if (condition) options(value) else None
  }

  final class Texts(private val text: String) extends AnyVal {
    def toIntOption: Option[Int] = Try(text.toInt).toOption
  }

  final class Traversed[A](private val all: TraversableOnce[A]) extends AnyVal {
    def maxOption(implicit order: Ordering[A]): Option[A] = all.reduceOption((one, other) => order.max(one, other))
    def minOption(implicit order: Ordering[A]): Option[A] = all.reduceOption((one, other) => order.min(one, other))
  }

  final class Iterated[A](private val iterator: Iterator[A]) extends AnyVal {
    def nextOption(): Option[A] = if (iterator.hasNext) Some(iterator.next()) else None
  }

  final class Sequences[A](private val all: Seq[A]) extends AnyVal {

    def distinctBy[B](by: A => B): Seq[A] = {
      val seen = mutable.Set.empty[B]
      all.filter(one => seen.add(by(one)))
    }

    def partitionMap[L, R](side: A => Either[L, R]): (Seq[L], Seq[R]) = {
      val sides = all.map(side)
      (sides.collect { case Left(one) => one }, sides.collect { case Right(one) => one })
    }

    def groupMap[K, B](key: A => K)(value: A => B): Map[K, Seq[B]] =
      all.groupBy(key).map { case (k, group) => k -> group.map(value) }
  }

  final class Maps[K, V](private val map: mutable.Map[K, V]) extends AnyVal {
    def filterInPlace(keep: (K, V) => Boolean): Unit = map.retain(keep)
  }
}

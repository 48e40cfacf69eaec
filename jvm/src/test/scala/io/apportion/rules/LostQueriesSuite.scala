package io.apportion.rules

import scala.collection.mutable

import org.scalatest.funsuite.AnyFunSuite

class LostQueriesSuite extends AnyFunSuite {
  private val running = mutable.Set(1L, 2L)
  private val delay = LostQueries.LongestDelay

  test("a query is lost some time after its end, once") {
    val lost = new LostQueries(running)
    assert(lost.among(Seq(1, 2), now = 0).isEmpty)
    running -= 1
    assert(lost.among(Seq(1, 2), now = delay * 5).isEmpty)
    assert(lost.among(Seq(1, 2), now = delay * 6 + 1) == Set(1))
    assert(lost.among(Seq(2), now = delay * 7).isEmpty)
  }

  test("a query whose end the listener heard later is not lost") {
    val lost = new LostQueries(_ => false)
    assert(lost.among(Seq(7), now = 0).isEmpty)
    assert(lost.among(Nil, now = 1).isEmpty)
    assert(lost.among(Seq(7), now = delay + 1).isEmpty)
  }
}

package io.apportion.writes

import java.lang.ref.WeakReference

import io.apportion.rules.LostQueries
import io.apportion.writes.statements.WriteEntries
import org.scalatest.funsuite.AnyFunSuite

class WriteListenerSuite extends AnyFunSuite {

  test("a statement whose end was lost is forgotten when another one runs") {
    val listener = new WriteListener(new LostQueries(_ => false, delay = -1))
    val watched = WriteListener.Watched(new WeakReference(null), WriteEntries("statement", "table"), read = 1)
    Seq(1L, 2L).foreach(listener.watch(_, watched))
    assert(listener.waitingQueries == Set(2L))
  }
}

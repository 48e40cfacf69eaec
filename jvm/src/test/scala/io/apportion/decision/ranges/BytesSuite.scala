package io.apportion.decision.ranges

import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.prop.TableDrivenPropertyChecks._

class BytesSuite extends AnyFunSuite {
  private val texts = Table(
    ("bytes", "text"),
    (0L, "0 B"),
    (1023L, "1023 B"),
    (1024L, "1 KiB"),
    (1536L, "1.5 KiB"),
    ((1L << 20) - 1, "1 MiB"),
    (64L << 20, "64 MiB"),
    (Long.MaxValue, "8 EiB")
  )

  forAll(texts) { (bytes, text) =>
    test(s"$bytes bytes are written as $text") {
      assert(Bytes.text(bytes) == text)
    }
  }
}

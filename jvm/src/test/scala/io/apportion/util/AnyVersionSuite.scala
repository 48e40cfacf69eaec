package io.apportion.util

import org.scalatest.funsuite.AnyFunSuite

class AnyVersionSuite extends AnyFunSuite {
  import AnyVersionSuite._

  test("a method is called with the defaults of the parameters that a later version added") {
    assert(AnyVersion.call(Later, "text", 1) == "1, 2, true")
    assert(AnyVersion.call(Later, "text", 1, 5) == "1, 5, true")
  }

  test("of two methods with one name, the method that accepts the arguments is called") {
    assert(AnyVersion.call(Later, "of", "a") == "text a")
    assert(AnyVersion.call(Later, "of", Integer.valueOf(1)) == "number 1")
  }

  test("an exception of the method is the caller's") {
    assert(intercept[IllegalStateException](AnyVersion.call(Later, "fails")).getMessage == "no")
  }

  test("an instance gets the defaults of the parameters between the first and the last") {
    val made = AnyVersion.create(Made, classOf[Made], first = Seq(1), last = Seq("end"))
    assert((made.a, made.b, made.end) == ((1, 7, "end")))
  }

  test("a copy has another value in a field") {
    val fields = Fields(1, "a")
    assert(AnyVersion.replace(fields, fields.text, "b") == Fields(1, "b"))
  }
}

object AnyVersionSuite {
  object Later {
    def text(first: Int, second: Int = 2, third: Boolean = true): String = s"$first, $second, $third"
    def of(name: String): String = s"text $name"
    def of(number: Integer): String = s"number $number"
    def fails(): Unit = throw new IllegalStateException("no")
  }

  class Made(val a: Int, val b: Int = 7, val end: String) {
    def this(a: Int) = this(a, 0, "")
  }

  object Made

  final case class Fields(number: Int, text: String)
}

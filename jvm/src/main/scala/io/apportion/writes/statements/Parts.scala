package io.apportion.writes.statements

import scala.reflect.ClassTag

/** Values in the classes of other libraries, by their types: the names and places of fields differ between versions. */
private[statements] object Parts {

  /** Fields of this type, in their order. An option counts as its value. */
  def of[T: ClassTag](value: Any): Seq[T] = {
    val fields = value match {
      case product: Product => product.productIterator
      case _                => Iterator.empty
    }
    val values = fields.flatMap {
      case option: Option[_] => option.iterator
      case field             => Iterator.single(field)
    }
    values.collect { case field: T => field }.toSeq
  }

  /** Map of texts in the fields; an empty one if there is none. */
  def textsOf(value: Any): Map[String, String] =
    of[Map[Any, Any]](value).take(1).flatMap(_.toSeq).map { case (key, text) => key.toString -> text.toString }.toMap
}

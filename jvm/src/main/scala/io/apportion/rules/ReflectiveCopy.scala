package io.apportion.rules

/**
 * Creates instances of Spark's case classes without naming all of their fields. So one jar runs with several versions
 * of Spark, even if a later version adds a field.
 */
private[apportion] object ReflectiveCopy {

  /** A copy with another first field. */
  def replaceFirstField[T <: Product](value: T, first: Any): T =
    make(value.getClass.asInstanceOf[Class[T]], Iterator.single(first) ++ value.productIterator.drop(1))

  /** An instance with `false` in all fields. */
  def allFalse[T](kind: Class[T]): T =
    make(kind, Iterator.continually(false).take(kind.getConstructors.head.getParameterCount))

  private def make[T](kind: Class[T], fields: Iterator[Any]): T =
    kind.cast(kind.getConstructors.head.newInstance(fields.map(_.asInstanceOf[AnyRef]).toSeq: _*))
}

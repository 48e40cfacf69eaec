package io.apportion.rules

/**
 * Makes Spark's case classes without naming all of their fields: versions of Spark whose classes differ in nothing but a field
 * more can then run the same jar.
 */
private[apportion] object ReflectiveCopy {

  /** The same, but for its first field. */
  def replaceFirstField[T <: Product](value: T, first: Any): T =
    make(value.getClass.asInstanceOf[Class[T]], Iterator.single(first) ++ value.productIterator.drop(1))

  /** With all of its fields false. */
  def allFalse[T](kind: Class[T]): T =
    make(kind, Iterator.continually(false).take(kind.getConstructors.head.getParameterCount))

  private def make[T](kind: Class[T], fields: Iterator[Any]): T =
    kind.cast(kind.getConstructors.head.newInstance(fields.map(_.asInstanceOf[AnyRef]).toSeq: _*))
}

package io.apportion

/**
 * Makes Spark's case classes without naming all of their fields: versions of Spark whose classes differ in nothing but a field
 * more can then run the same jar.
 */
private[apportion] object CaseClass {

  /** The same, but for its first field. */
  def withFirst[T <: Product](value: T, first: Any): T =
    of(value.getClass.asInstanceOf[Class[T]], Iterator.single(first) ++ value.productIterator.drop(1))

  /** With all of its fields false. */
  def ofFalse[T](of: Class[T]): T =
    this.of(of, Iterator.continually(false).take(of.getConstructors.head.getParameterCount))

  private def of[T](of: Class[T], fields: Iterator[Any]): T =
    of.cast(of.getConstructors.head.newInstance(fields.map(_.asInstanceOf[AnyRef]).toSeq: _*))
}

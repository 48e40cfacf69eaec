package io.apportion.util

import java.lang.reflect.InvocationTargetException

/**
 * Calls of Spark's methods and constructors that get more parameters in later versions. So one jar runs with several
 * versions of Spark.
 */
object AnyVersion {

  /** Calls a method with these first arguments, and with the defaults of its other parameters. */
  def call(target: AnyRef, method: String, first: Any*): Any =
    target.getClass.getMethods.iterator
      .filter(each => each.getName == method && each.getParameterCount >= first.size)
      .flatMap { each =>
        val arguments = defaultsOf(target, method, first.size, each.getParameterCount).map(first ++ _)
        arguments.filter(accepts(each.getParameterTypes.toSeq, _)).map(each -> _)
      }
      .map { case (found, arguments) => unwrapped(found.invoke(target, refs(arguments): _*)) }
      .next()

  /**
   * An instance by the longest constructor that takes the first arguments.
   *
   * @param companion has the defaults of the parameters between the first and the last arguments
   */
  def create[T](companion: AnyRef, kind: Class[T], first: Seq[Any], last: Seq[Any]): T = {
    val longest =
      kind.getConstructors.filter(each => accepts(each.getParameterTypes.toSeq, first)).maxBy(_.getParameterCount)
    val defaults =
      defaultsOf(companion, "$lessinit$greater", first.size, longest.getParameterCount - last.size)
    kind.cast(unwrapped(longest.newInstance(refs(first ++ defaults.get ++ last): _*)))
  }

  /** A copy of a case class with `to` in the field that has `from`. */
  def replace[T <: Product](value: T, from: AnyRef, to: AnyRef): T =
    make(
      value.getClass.asInstanceOf[Class[T]],
      refs(value.productIterator.toSeq).iterator.map(f => if (f eq from) to else f)
    )

  /** An instance with `false` in all fields. */
  def allFalse[T](kind: Class[T]): T =
    make(kind, Iterator.continually(false).take(kind.getConstructors.head.getParameterCount))

  /** Defaults of the parameters from number `from` to number `until`; `None` if one of them has no default. */
  private def defaultsOf(target: AnyRef, method: String, from: Int, until: Int): Option[Seq[Any]] = {
    val found = (from until until).flatMap { i =>
      target.getClass.getMethods.find(_.getName == s"$method$$default$$${i + 1}").map(_.invoke(target): Any)
    }
    Some(found).filter(_.size == until - from)
  }

  private def accepts(types: Seq[Class[_]], arguments: Seq[Any]): Boolean =
    types.zip(arguments).forall { case (kind, value) => kind.isPrimitive || value == null || kind.isInstance(value) }

  private def make[T](kind: Class[T], fields: Iterator[Any]): T =
    kind.cast(unwrapped(kind.getConstructors.head.newInstance(refs(fields.toSeq): _*)))

  private def unwrapped[T](call: => T): T =
    try call
    catch { case error: InvocationTargetException => throw error.getCause }

  private def refs(values: Seq[Any]): Seq[AnyRef] = values.map(_.asInstanceOf[AnyRef])
}

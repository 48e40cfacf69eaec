package io.apportion.keys

import io.apportion.util.AnyVersion
import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, RuntimeReplaceable}
import org.apache.spark.sql.types._

/** Checks of the arguments of SQL functions. */
private[keys] object Arguments {

  /** Reason why nothing is computed. */
  sealed trait Stop
  case object IsNull extends Stop
  final case class Wrong(why: String) extends Stop

  type Checked[T] = Either[Stop, T]

  val IntegerTypes = "TINYINT, SMALLINT, INT or BIGINT"

  /** Casts an argument with a whole number in each row to BIGINT. */
  def integer(name: String, argument: Expression): Checked[Expression] =
    argument.dataType match {
      case NullType          => Left(IsNull)
      case t if isInteger(t) => Right(Cast(argument, LongType))
      case _                 => wrongType(name, argument, IntegerTypes)
    }

  /** The value of an argument that is a whole number, and known during analysis. */
  def constant(name: String, argument: Expression, min: Int = 1, max: Int = Int.MaxValue): Checked[Int] = {
    def wrong(value: Any) =
      Left(Wrong(s"$name must be a constant whole number from $min to $max, but is $value"))
    val known = argument.transform { case replaceable: RuntimeReplaceable => replaceable.replacement }
    if (!known.foldable) wrong(text(argument))
    else
      known.eval() match {
        case null                                   => Left(IsNull)
        case n: Number if isInteger(known.dataType) =>
          if (min <= n.longValue && n.longValue <= max) Right(n.intValue) else wrong(n)
        case _ => wrong(text(argument))
      }
  }

  def wrongType(name: String, argument: Expression, allowed: String): Checked[Nothing] =
    Left(Wrong(s"$name must be $allowed, but ${text(argument)} is ${argument.dataType.sql}"))

  private def text(argument: Expression): String =
    AnyVersion.call(org.apache.spark.sql.catalyst.util.`package`, "toPrettySQL", argument).toString

  private def isInteger(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _                                             => false
  }
}

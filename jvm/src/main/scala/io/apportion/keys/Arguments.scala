package io.apportion.keys

import org.apache.spark.sql.catalyst.expressions.{Cast, Expression, RuntimeReplaceable}
import org.apache.spark.sql.catalyst.util.toPrettySQL
import org.apache.spark.sql.types._

/** Checks arguments of functions, and says what is allowed. */
private[keys] object Arguments {

  /** Why there is nothing to compute. */
  sealed trait Stop
  case object IsNull extends Stop
  final case class Wrong(why: String) extends Stop

  type Checked[T] = Either[Stop, T]

  val IntegerTypes = "TINYINT, SMALLINT, INT and BIGINT"

  /** A whole number in each row, as BIGINT. */
  def integer(name: String, argument: Expression): Checked[Expression] =
    argument.dataType match {
      case NullType          => Left(IsNull)
      case t if isInteger(t) => Right(Cast(argument, LongType))
      case _                 => wrongType(name, argument, IntegerTypes)
    }

  /** A whole number that is known when a query is analysed. */
  def constant(name: String, argument: Expression, least: Int = 1, most: Int = Int.MaxValue): Checked[Int] = {
    def wrong(what: Any) =
      Left(Wrong(s"$name is $what: allowed is a constant, a whole number from $least to $most"))
    val known = argument.transform { case replaceable: RuntimeReplaceable => replaceable.replacement }
    if (!known.foldable) wrong(toPrettySQL(argument))
    else
      known.eval() match {
        case null                                   => Left(IsNull)
        case n: Number if isInteger(known.dataType) =>
          if (least <= n.longValue && n.longValue <= most) Right(n.intValue) else wrong(n)
        case _ => wrong(toPrettySQL(argument))
      }
  }

  def wrongType(name: String, argument: Expression, allowed: String): Checked[Nothing] =
    Left(Wrong(s"$name is ${toPrettySQL(argument)} of type ${argument.dataType.sql}: allowed are $allowed"))

  private def isInteger(dataType: DataType): Boolean = dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _                                             => false
  }
}

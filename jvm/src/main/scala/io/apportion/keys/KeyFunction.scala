package io.apportion.keys

import io.apportion.keys.Arguments.{Checked, IsNull, Wrong}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult.{TypeCheckFailure, TypeCheckSuccess}
import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionInfo, Literal, RuntimeReplaceable}
import org.apache.spark.sql.types.DataType

/** A call of a function in [[KeyFunctionRegistry]]. Analysis checks it. The optimizer replaces it by its code. */
private[keys] final case class KeyFunction(definition: KeyFunction.Definition, children: Seq[Expression])
    extends RuntimeReplaceable {

  @transient private lazy val implementation: Either[String, Expression] = definition.implementation(children)

  override def prettyName: String = definition.name

  override def checkInputDataTypes(): TypeCheckResult = implementation.fold(
    TypeCheckFailure(_),
    // Spark's own expressions reject types that it cannot partition by.
    _.collectFirst { case part if part.checkInputDataTypes().isFailure => part.checkInputDataTypes() }
      .getOrElse(TypeCheckSuccess)
  )

  override def replacement: Expression =
    implementation.fold(problem => throw new IllegalArgumentException(problem), identity)

  override protected def stringArgs: Iterator[Any] = children.iterator

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): KeyFunction =
    copy(children = newChildren)
}

private[keys] object KeyFunction {
  type Description = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression)

  /**
   * A SQL function. It returns NULL if an argument is NULL, except for columns to partition by.
   *
   * @param parameters parameters as they are written in a call
   * @param dataType   type of the result
   * @param arguments  each parameter with its meaning
   * @param examples   expressions, with _FUNC_ for the name, and their results
   * @param implement  makes the expression that computes the function; not defined for a wrong number of arguments
   */
  final class Definition(
      val name: String,
      parameters: String,
      dataType: DataType,
      usage: String,
      arguments: Seq[(String, String)],
      examples: Seq[(String, String)]
  )(implement: PartialFunction[Seq[Expression], Checked[Expression]])
      extends Serializable {

    /** The expression that computes the function, or the problem with the arguments. */
    def implementation(children: Seq[Expression]): Either[String, Expression] =
      implement.lift(children) match {
        case Some(Right(expression)) => Right(expression)
        case Some(Left(IsNull))      => Right(Literal(null, dataType))
        case Some(Left(Wrong(why)))  => Left(why)
        case None                    =>
          val count = if (children.size == 1) "1 argument" else s"${children.size} arguments"
          Left(s"$name takes the arguments ($parameters), but is called with $count")
      }

    /** Arguments of `SparkSessionExtensions.injectFunction`. */
    def description: Description =
      (FunctionIdentifier(name), help, KeyFunction(this, _))

    private def help: ExpressionInfo = new ExpressionInfo(
      classOf[KeyFunction].getName,
      null,
      name,
      s"_FUNC_($parameters) - $usage",
      section("Arguments", arguments.map { case (parameter, meaning) => s"* $parameter - $meaning" }),
      section("Examples", examples.flatMap { case (call, result) => Seq(s"> SELECT $call;", s" $result") }),
      "",
      "hash_funcs",
      "0.1.0",
      "",
      "scala_udf"
    )

    /** A section of the help, in the layout of Spark's own functions. */
    private def section(title: String, lines: Seq[String]): String =
      lines.map(line => s"      $line\n").mkString(s"\n    $title:\n", "", "  ")
  }
}

package io.apportion.keys

import java.lang.reflect.{Method, Modifier}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.codegen.{CodeGenerator, CodegenContext, ExprCode, FalseLiteral}
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.DataType

/**
 * Calls the only static method of this name in a class. The result is null if an argument is null. Spark's
 * `StaticInvoke` copies arguments to fields. Here literals stay literals in the generated code, so that the JVM knows
 * the divisors.
 */
private[keys] final case class StaticCall(
    owner: String,
    method: String,
    dataType: DataType,
    children: Seq[Expression]
) extends Expression {

  override def nullable: Boolean = children.exists(_.nullable)

  override def foldable: Boolean = children.forall(_.foldable)

  override def prettyName: String = method

  override protected def stringArgs: Iterator[Any] = children.iterator

  @transient private lazy val target: Method = Class
    .forName(owner, true, getClass.getClassLoader)
    .getMethods
    .find(candidate => candidate.getName == method && Modifier.isStatic(candidate.getModifiers))
    .get

  override def eval(input: InternalRow): Any = {
    val arguments = children.map(_.eval(input).asInstanceOf[AnyRef])
    if (arguments.contains(null)) null else target.invoke(null, arguments: _*)
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val arguments = children.map(_.genCode(ctx))
    val before = arguments.map(_.code).reduce(_ + _)
    val javaType = CodeGenerator.javaType(dataType)
    val call = s"$owner.$method(${arguments.map(_.value).mkString(", ")})"
    if (nullable) {
      val anyNull = children.zip(arguments).collect { case (child, code) if child.nullable => code.isNull }
      ev.copy(code = code"""
        $before
        boolean ${ev.isNull} = ${anyNull.mkString(" || ")};
        $javaType ${ev.value} = ${CodeGenerator.defaultValue(dataType)};
        if (!${ev.isNull}) {
          ${ev.value} = $call;
        }
        """)
    } else
      ev.copy(
        code = code"""
        $before
        $javaType ${ev.value} = $call;
        """,
        isNull = FalseLiteral
      )
  }

  override protected def withNewChildrenInternal(newChildren: IndexedSeq[Expression]): StaticCall =
    copy(children = newChildren)
}

private[keys] object StaticCall {

  /** A call of a method of a Scala object. */
  def of(owner: AnyRef, method: String, dataType: DataType)(arguments: Expression*): StaticCall =
    StaticCall(owner.getClass.getName.stripSuffix("$"), method, dataType, arguments)
}

import scala.xml.Node
import scala.xml.transform.{RewriteRule, RuleTransformer}

/** Leaves out of a POM what only tests need. */
object PomWithoutTests {

  def of(pom: Node): Node = new RuleTransformer(rule).transform(pom).head

  private val rule = new RewriteRule {
    override def transform(node: Node): Seq[Node] =
      if (node.label == "dependency" && (node \ "scope").text == "test") Nil else Seq(node)
  }
}

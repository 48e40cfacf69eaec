package io.apportion.policies

import java.util.regex.PatternSyntaxException

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.core.{JsonFactory, JsonParser}
import com.fasterxml.jackson.databind.{DeserializationFeature, JsonNode, ObjectMapper}
import io.apportion.hints.{BlockHints, PolicyHints}
import io.apportion.settings.Nearest
import org.slf4j.LoggerFactory

/**
 * The rules of a policy file.
 *
 * @param problems one sentence for each rule that is wrong and was left out
 */
private[policies] final case class PolicyFile(rules: Seq[PolicyRule], problems: Seq[String])

/** Parses policy files. `python/apportion/policies` makes the same checks. */
private[policies] object PolicyFile {
  private type Read[+T] = Either[String, T]

  /** Logs everything about policy files, so that users find it under one name. */
  private[policies] val log = LoggerFactory.getLogger(getClass.getName.stripSuffix("$"))

  /** @return the rules, or the reason why the file has no rules */
  def parse(text: String, isJson: Boolean): Read[PolicyFile] = for {
    mapper <- if (isJson) Right(jsonMapper) else yamlMapper
    root <- tree(mapper, text)
    _ <- fields(root, "the file", Seq("rules"))
    list <- Option(root.get("rules")).filter(_.isArray).toRight("the file needs a list of rules with the key rules")
  } yield {
    val (problems, rules) = list.elements.asScala.toSeq.zipWithIndex.partitionMap { case (node, i) =>
      rule(node, i + 1)
    }
    PolicyFile(rules, problems)
  }

  private lazy val jsonMapper = strict(new ObjectMapper)

  /** Distributions of Spark have this library for Kubernetes. Spark SQL does not need it, so it may be missing. */
  private lazy val yamlMapper: Read[ObjectMapper] =
    try {
      val factory = Class.forName("com.fasterxml.jackson.dataformat.yaml.YAMLFactory").getConstructor().newInstance()
      Right(strict(new ObjectMapper(factory.asInstanceOf[JsonFactory])))
    } catch {
      case NonFatal(_) | _: LinkageError | _: ClassNotFoundException =>
        Left(
          "this Spark cannot read YAML, as it has no jackson-dataformat-yaml. Write JSON in a file that ends in .json"
        )
    }

  private def strict(mapper: ObjectMapper): ObjectMapper = mapper
    .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
    .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)

  private def tree(mapper: ObjectMapper, text: String): Read[JsonNode] =
    try Right(mapper.readTree(text))
    catch { case NonFatal(failure) => Left(failure.getMessage.linesIterator.map(_.trim).mkString(" ")) }

  private def rule(node: JsonNode, number: Int): Read[PolicyRule] = {
    val name = Option(node.get("name")).filter(_.isTextual).map(_.asText)
    val read = for {
      _ <- fields(node, "the rule", Seq("name", "match", "settings", "hints", "blocks", "force"))
      _ <- if (node.has("name") && name.isEmpty) Left("name must be text") else Right(())
      conditions <- conditionsOf(node.get("match"))
      settings <- settingsOf(node.get("settings"))
      hints <- hintsOf(node.get("hints"), "hints")
      blocks <- blocksOf(node.get("blocks"))
      force <- Option(node.get("force")).fold[Read[Boolean]](Right(false))(value =>
        if (value.isBoolean) Right(value.asBoolean) else Left(s"force is ${shown(value)}. Allowed: true, false")
      )
      _ <-
        if (settings.isEmpty && hints.isEmpty && blocks.isEmpty) Left("it sets nothing. Add settings, hints or blocks")
        else Right(())
    } yield {
      def ruled(hints: BlockHints) = hints.ofRule(PolicyRule.source(number, name), force)
      PolicyRule(
        number,
        name,
        conditions,
        settings,
        hints.fold(BlockHints.none)(ruled),
        blocks.map { case (block, hints) => block -> ruled(hints) },
        force
      )
    }
    read.left.map(problem => s"${PolicyRule.title(number, name)}: $problem")
  }

  private def conditionsOf(node: JsonNode): Read[Conditions] =
    if (node == null) Left("it has no match. To match every query, write user: \"*\" under match")
    else
      for {
        _ <- fields(node, "match", ConditionNames)
        _ <-
          if (node.size > 0) Right(()) else Left(s"match has no conditions. Allowed: ${ConditionNames.mkString(", ")}")
        texts <- all(node.fieldNames.asScala.toSeq)(key => texts(node.get(key), key).map(key -> _)).map(_.toMap)
        sql <- texts.get("sql").fold[Read[Option[SqlPattern]]](Right(None))(sqlPattern)
      } yield {
        def names(key: String, ignoresCase: Boolean = false) =
          texts.getOrElse(key, Nil).map(new NamePattern(_, ignoresCase))
        def tables(key: String) = texts.getOrElse(key, Nil).map(new TablePattern(_))
        Conditions(
          names("fingerprint"),
          names("user"),
          names("application"),
          names("jobTag"),
          tables("table"),
          tables("writes"),
          names("catalog", ignoresCase = true),
          sql
        )
      }

  private val ConditionNames =
    Seq("fingerprint", "user", "application", "jobTag", "table", "sql", "writes", "catalog")

  private def sqlPattern(texts: Seq[String]): Read[Option[SqlPattern]] = texts match {
    case Seq(text) =>
      try Right(Some(new SqlPattern(text)))
      catch {
        case failure: PatternSyntaxException =>
          val shown = text.take(MaxShown)
          Left(s"sql is '$shown', which is not a regular expression: ${failure.getDescription} at ${failure.getIndex}")
        // Only some versions of Java turn it into an exception. It would end the thread that reads the file.
        case _: StackOverflowError => Left("sql is nested too deeply")
      }
    case _ => Left("sql takes one regular expression")
  }

  private def settingsOf(node: JsonNode): Read[Map[String, String]] =
    if (node == null) Right(Map.empty)
    else
      for {
        _ <- if (node.isObject && node.size > 0) Right(()) else Left("settings must have names and values")
        pairs <- all(node.fieldNames.asScala.toSeq) { name =>
          val value = node.get(name)
          if (value.isValueNode && !value.isNull) RuleSettings.read(name, value.asText)
          else Left(s"$name is ${shown(value)}. Allowed: one value")
        }
        settings = pairs.toMap
        _ <- RuleSettings.contradiction(settings).toLeft(())
      } yield settings

  private def hintsOf(node: JsonNode, key: String): Read[Option[BlockHints]] =
    if (node == null) Right(None)
    else if (!node.isTextual) Left(s"$key is ${shown(node)}. Allowed: text, such as PARALLELISM(8)")
    else PolicyHints.parse(node.asText).map(Some(_)).left.map(problem => s"$key: $problem")

  private def blocksOf(node: JsonNode): Read[Seq[(Seq[String], BlockHints)]] =
    if (node == null) Right(Nil)
    else if (!node.isObject || node.size == 0) Left("blocks must have names of blocks, each with hints")
    else
      all(node.fieldNames.asScala.toSeq) { block =>
        for {
          name <- PolicyHints.blockName(block).toRight(s"block $block is not a name")
          hints <- hintsOf(node.get(block), s"block $block")
        } yield name -> hints.get
      }

  /** One text or a list of texts. */
  private def texts(node: JsonNode, key: String): Read[Seq[String]] = {
    val values = if (node.isArray) node.elements.asScala.toSeq else Seq(node)
    if (values.nonEmpty && values.forall(value => value.isTextual && value.asText.trim.nonEmpty))
      Right(values.map(_.asText))
    else Left(s"$key is ${shown(node)}. Allowed: text, or a list of texts")
  }

  private def fields(node: JsonNode, where: String, known: Seq[String]): Read[Unit] =
    if (node == null || !node.isObject) Left(s"$where must have keys and values. Allowed keys: ${known.mkString(", ")}")
    else
      node.fieldNames.asScala
        .find(!known.contains(_))
        .map(key =>
          s"$where has the unknown key $key. Did you mean ${Nearest.to(key, known)}? Allowed: ${known.mkString(", ")}"
        )
        .toLeft(())

  /** The values, or the first problem. */
  private def all[A, B](values: Seq[A])(read: A => Read[B]): Read[Seq[B]] = {
    val (problems, good) = values.map(read).partitionMap(identity)
    problems.headOption.toLeft(good)
  }

  private def shown(node: JsonNode): String = node.toString.take(MaxShown)

  private val MaxShown = 200
}

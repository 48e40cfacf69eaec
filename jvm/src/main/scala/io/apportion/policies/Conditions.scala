package io.apportion.policies

/**
 * The conditions of a rule, all of which must hold. A condition with several values holds if one of them matches. A
 * condition without values is not set.
 */
private[policies] final case class Conditions(
    fingerprints: Seq[NamePattern] = Nil,
    users: Seq[NamePattern] = Nil,
    applications: Seq[NamePattern] = Nil,
    jobTags: Seq[NamePattern] = Nil,
    tables: Seq[TablePattern] = Nil,
    writes: Seq[TablePattern] = Nil,
    catalogs: Seq[NamePattern] = Nil,
    sql: Option[SqlPattern] = None
) {

  /** Whether all conditions hold. The fast ones come first. */
  def hold(query: QueryFacts): Boolean = {
    def one[P](patterns: Seq[P])(holds: P => Boolean) = patterns.isEmpty || patterns.exists(holds)
    one(users)(_.matches(query.user)) &&
    one(applications)(_.matches(query.application)) &&
    one(jobTags)(pattern => query.jobTags.exists(pattern.matches)) &&
    one(tables)(pattern => pattern.mayMatch(query.trigramsOfReads) && query.reads.exists(pattern.matches)) &&
    one(writes)(pattern => query.writes.exists(pattern.matches)) &&
    one(catalogs)(pattern => query.catalogs.exists(pattern.matches)) &&
    one(fingerprints)(_.matches(query.fingerprint)) &&
    sql.forall(pattern => query.sql.exists(pattern.isIn))
  }

  /** Keys of which a matching query has at least one. `None` if only a test of the conditions tells. */
  def keys: Option[Seq[ConditionKey]] = {
    def exact(kind: String, names: Seq[Option[String]]) =
      Option.when(names.nonEmpty && names.forall(_.isDefined))(names.flatten.map(ConditionKey(kind, _)))
    exact("fingerprint", fingerprints.map(_.exact))
      .orElse(exact("table", tables.map(_.exact)))
      .orElse(exact("writes", writes.map(_.exact)))
      .orElse(exact("user", users.map(_.exact)))
      .orElse(exact("application", applications.map(_.exact)))
      .orElse(exact("jobTag", jobTags.map(_.exact)))
  }
}

/** A condition on one exact value. For tables, the value is the last part of the name. */
private[policies] final case class ConditionKey(kind: String, value: String)

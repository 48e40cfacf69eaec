package io.apportion.resources

import io.apportion.resources.deadlines.QueryCosts
import io.apportion.resources.planned.PlannedStage

/**
 * The work of a running query.
 *
 * @param costs what the query cost in earlier runs
 * @param ahead stages that have not finished, in an order in which each follows the stages that it reads
 */
private[apportion] final class QueryWork(val costs: QueryCosts, val ahead: Seq[PlannedStage])

package org.apache.spark.apportion

import org.apache.spark.SparkContext
import org.apache.spark.internal.config._
import org.apache.spark.internal.config.Tests.TEST_MEMORY
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler.cluster.{SchedulerBackendUtils, StandaloneSchedulerBackend}
import org.apache.spark.sql.execution.SparkPlan

/**
 * Heap of the processes that a broadcast table has to fit.
 *
 * @param driver   bytes of the driver's heap
 * @param executor bytes of an executor's heap; `None` if tasks run in the driver
 */
final case class Heaps(driver: Long, executor: Option[Long])

/**
 * Requests for executors, and what they have. It is in Spark's namespace because such requests, resource profiles and the
 * list of executors are private to Spark.
 */
object ExecutorResources {

  /** Milliseconds since the newest executor was registered; 0 if there is none. */
  def millisSinceAdded(sparkContext: SparkContext): Long =
    Cluster
      .activeExecutors(sparkContext)
      .map(_.addTime.getTime)
      .maxOption
      .fold(0L)(System.currentTimeMillis() - _)
      .max(0)

  /** Minimum and maximum number of slots with dynamic allocation. */
  def dynamicBounds(sparkContext: SparkContext): Option[(Int, Int)] = Option.when(Cluster.isDynamic(sparkContext)) {
    val conf = sparkContext.conf
    val perExecutor = Cluster.slotsPerExecutor(sparkContext).toLong
    def slotsOf(executors: Int): Int = (executors * perExecutor).min(Int.MaxValue.toLong).toInt
    (slotsOf(conf.get(DYN_ALLOCATION_MIN_EXECUTORS)), slotsOf(conf.get(DYN_ALLOCATION_MAX_EXECUTORS)))
  }

  /**
   * Requests executors with this total number of slots, but at least `spark.executor.instances` executors. Returns
   * whether the cluster manager accepted the request.
   */
  def request(sparkContext: SparkContext, slots: Int): Boolean = {
    val perExecutor = Cluster.slotsPerExecutor(sparkContext)
    val executors = slots / perExecutor + (if (slots % perExecutor == 0) 0 else 1)
    val minExecutors = sparkContext.conf.get(EXECUTOR_INSTANCES).getOrElse(0)
    sparkContext.requestTotalExecutors(executors.max(minExecutors), 0, Map.empty)
  }

  /** Requests as many executors as Spark requested at the start of the application. Returns whether it was accepted. */
  def requestInitial(sparkContext: SparkContext): Boolean = {
    val executors = sparkContext.schedulerBackend match {
      // It starts without a limit if dynamic allocation is off (StandaloneSchedulerBackend.start, 3.5 to 4.2).
      case _: StandaloneSchedulerBackend => Int.MaxValue
      case _                             => SchedulerBackendUtils.getInitialTargetExecutorNumber(sparkContext.conf)
    }
    sparkContext.requestTotalExecutors(executors, 0, Map.empty)
  }

  /**
   * Resource profile of a stage with these operators. `mapInPandas` and `mapInArrow` take one since Spark 4.0; the other
   * operators run in the default profile.
   */
  def profileOf(sparkContext: SparkContext, operators: Seq[SparkPlan]): ResourceProfile =
    operators.iterator
      .flatMap(_.productIterator.collect { case Some(own: ResourceProfile) => own })
      .nextOption()
      .getOrElse(Cluster.profile(sparkContext))

  /** Resources of one slot of a resource profile. */
  def spec(sparkContext: SparkContext, of: ResourceProfile): ResourceSpec = {
    val usual = Cluster.profile(sparkContext)
    // A profile that only has resources of tasks uses the executors of the default profile.
    val executor = usual.executorResources ++ of.executorResources
    val perExecutor =
      if (of.id == usual.id) Cluster.slotsPerExecutor(sparkContext)
      else of.maxTasksPerExecutor(sparkContext.conf).max(1)
    def mebibytes(name: String): Long = executor.get(name).fold(0L)(request => (request.amount << 20) / perExecutor)
    val tasks = of.taskResources
    ResourceSpec(
      cores = tasks.get(ResourceProfile.CPUS).fold(1.0)(_.amount),
      memoryBytes = mebibytes(ResourceProfile.MEMORY),
      overheadBytes = mebibytes(ResourceProfile.OVERHEAD_MEM),
      custom = (tasks - ResourceProfile.CPUS).map { case (name, request) => name -> request.amount }
    )
  }

  /** Heaps of the driver and of the executors of the default resource profile. */
  def heaps(sparkContext: SparkContext): Heaps = {
    val executor = Cluster.profile(sparkContext).executorResources.get(ResourceProfile.MEMORY).map(_.amount << 20)
    // The same conf as in Spark's memory manager: the heap of the JVM, which tests can set.
    Heaps(sparkContext.conf.get(TEST_MEMORY), if (sparkContext.isLocal) None else executor)
  }
}

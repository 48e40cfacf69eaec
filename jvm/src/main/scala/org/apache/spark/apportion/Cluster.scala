package org.apache.spark.apportion

import java.lang.ref.WeakReference
import java.util.concurrent.TimeUnit

import io.apportion.decision.ResourceSpec
import org.apache.spark.{ExecutorAllocationClient, SparkContext}
import org.apache.spark.internal.config._
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.scheduler.cluster.{SchedulerBackendUtils, StandaloneSchedulerBackend}

/** In Spark's namespace because its conf itself, the scheduler's backend, resource profiles and the list of executors are private to it. */
object Cluster {
  private final class Seen(val sparkContext: WeakReference[SparkContext], val slots: Int, val at: Long)

  private val MaxAgeNanos = TimeUnit.SECONDS.toNanos(1)
  @volatile private var recent = Option.empty[Seen]

  /** What the application was started with for a key. */
  def submitted(sparkContext: SparkContext, key: String): Option[String] = sparkContext.conf.getOption(key)

  /** The subpartitions up to which Spark keeps the bytes of each. */
  def exactSizesUpTo(sparkContext: SparkContext): Int =
    sparkContext.conf.get(SHUFFLE_MIN_NUM_PARTS_TO_HIGHLY_COMPRESS)

  /** The partitions up to which a map task may write a file for each. */
  def bypassUpTo(sparkContext: SparkContext): Int = sparkContext.conf.get(SHUFFLE_SORT_BYPASS_MERGE_THRESHOLD)

  /** How many tasks of the default resource profile the registered executors run at once. */
  def slots(sparkContext: SparkContext): Int =
    sparkContext.schedulerBackend.maxNumConcurrentTasks(profile(sparkContext))

  /** [[slots]] as of the last second: asked for at every stage, it would lock the scheduler backend and visit all executors. */
  def recentSlots(sparkContext: SparkContext): Int = {
    val now = System.nanoTime()
    recent match {
      case Some(seen) if (seen.sparkContext.get eq sparkContext) && now - seen.at < MaxAgeNanos => seen.slots
      case _                                                                                    =>
        val found = slots(sparkContext)
        recent = Some(new Seen(new WeakReference(sparkContext), found, now))
        found
    }
  }

  /** The same of one executor: of those that are there, else as the conf says; 1 if that does not say it. */
  def slotsPerExecutor(sparkContext: SparkContext): Int = {
    val executors = activeExecutors(sparkContext).size
    val perExecutor =
      if (executors > 0) (slots(sparkContext) + executors - 1) / executors else slotsByConf(sparkContext)
    perExecutor.max(1)
  }

  /** Since the youngest executor was registered. */
  def millisSinceAdded(sparkContext: SparkContext): Long =
    activeExecutors(sparkContext).map(_.addTime.getTime).maxOption.fold(0L)(System.currentTimeMillis() - _).max(0)

  /** Whether Spark asks for executors itself, as tasks wait for them. */
  def isDynamic(sparkContext: SparkContext): Boolean =
    sparkContext.conf.get(DYN_ALLOCATION_ENABLED) && !sparkContext.isLocal

  /** Whether there is somebody to ask for executors. */
  def canBeAsked(sparkContext: SparkContext): Boolean =
    !isDynamic(sparkContext) && sparkContext.schedulerBackend.isInstanceOf[ExecutorAllocationClient]

  /** The slots that dynamic allocation keeps at least and at most. */
  def dynamicBounds(sparkContext: SparkContext): Option[(Int, Int)] = Option.when(isDynamic(sparkContext)) {
    val conf = sparkContext.conf
    val each = slotsPerExecutor(sparkContext).toLong
    def slotsOf(executors: Int): Int = (executors * each).min(Int.MaxValue.toLong).toInt
    (slotsOf(conf.get(DYN_ALLOCATION_MIN_EXECUTORS)), slotsOf(conf.get(DYN_ALLOCATION_MAX_EXECUTORS)))
  }

  /**
   * Asks the cluster manager for executors with so many slots in all, but for no fewer than the conf has set; says whether it took
   * the request.
   */
  def request(sparkContext: SparkContext, slots: Int): Boolean = {
    val each = slotsPerExecutor(sparkContext)
    val executors = slots / each + (if (slots % each == 0) 0 else 1)
    val least = sparkContext.conf.get(EXECUTOR_INSTANCES).getOrElse(0)
    sparkContext.requestTotalExecutors(executors.max(least), 0, Map.empty)
  }

  /** Requests the number of executors that Spark has requested at the start of the application; says whether it was accepted. */
  def requestInitial(sparkContext: SparkContext): Boolean = {
    val executors = sparkContext.schedulerBackend match {
      // It starts without a limit where dynamic allocation is off (StandaloneSchedulerBackend.start, 3.5 to 4.2).
      case _: StandaloneSchedulerBackend => Int.MaxValue
      case _                             => SchedulerBackendUtils.getInitialTargetExecutorNumber(sparkContext.conf)
    }
    sparkContext.requestTotalExecutors(executors, 0, Map.empty)
  }

  /** The id of the default resource profile, the one that queries run in. */
  def profileId(sparkContext: SparkContext): Int = profile(sparkContext).id

  /** What one slot of the default resource profile is made of. */
  def spec(sparkContext: SparkContext): ResourceSpec = {
    val its = profile(sparkContext)
    val each = slotsPerExecutor(sparkContext)
    def mebibytes(name: String): Long =
      its.executorResources.get(name).fold(0L)(request => (request.amount << 20) / each)
    val tasks = its.taskResources
    ResourceSpec(
      cores = tasks.get(ResourceProfile.CPUS).fold(1.0)(_.amount),
      memoryBytes = mebibytes(ResourceProfile.MEMORY),
      overheadBytes = mebibytes(ResourceProfile.OVERHEAD_MEM),
      custom = (tasks - ResourceProfile.CPUS).map { case (name, request) => name -> request.amount }
    )
  }

  private def profile(sparkContext: SparkContext): ResourceProfile =
    sparkContext.resourceProfileManager.defaultResourceProfile

  private def slotsByConf(sparkContext: SparkContext): Int = {
    val conf = sparkContext.conf
    def number(key: String): Double = conf.getOption(key).fold(1.0)(_.toDouble)
    // CPUs are a fraction from Spark 4.3 on.
    (number(EXECUTOR_CORES.key) / number(CPUS_PER_TASK.key)).toInt
  }

  private def activeExecutors(sparkContext: SparkContext) =
    sparkContext.statusStore
      .executorList(activeOnly = true)
      .filter(executor => sparkContext.isLocal || executor.id != SparkContext.DRIVER_IDENTIFIER)
}

package org.apache.spark.apportion

import java.lang.ref.WeakReference
import java.util.concurrent.TimeUnit

import scala.util.Try

import org.apache.spark.{ExecutorAllocationClient, SparkContext}
import org.apache.spark.internal.config._
import org.apache.spark.resource.ResourceProfile
import org.apache.spark.util.Utils

/**
 * Configuration, slots and memory of an application, as far as decisions need them. It is in Spark's namespace because
 * the configuration object, the scheduler backend, resource profiles and the list of executors are private to Spark.
 */
object Cluster {

  /** A value that is at most one second old, as reading it locks the scheduler or visits all executors. */
  private final class Recent[A](read: SparkContext => A) extends (SparkContext => A) {
    private final class Seen(val sparkContext: WeakReference[SparkContext], val value: A, val at: Long)

    @volatile private var seen = Option.empty[Seen]

    override def apply(sparkContext: SparkContext): A = {
      val now = System.nanoTime()
      seen match {
        case Some(last) if (last.sparkContext.get eq sparkContext) && now - last.at < MaxAgeNanos => last.value
        case _                                                                                    =>
          val value = read(sparkContext)
          seen = Some(new Seen(new WeakReference(sparkContext), value, now))
          value
      }
    }
  }

  private val MaxAgeNanos = TimeUnit.SECONDS.toNanos(1)

  /** Values in spark-defaults.conf, if it exists. The administrator of Spark set them for all users. */
  lazy val defaults: Map[String, String] = Option(Utils.getDefaultPropertiesFile())
    .flatMap(file => Try(Utils.getPropertiesFromFile(file)).toOption)
    .fold(Map.empty[String, String])(_.toMap)

  /** Value of a key at the start of the application. */
  def submitted(sparkContext: SparkContext, key: String): Option[String] = sparkContext.conf.getOption(key)

  /**
   * Whether another engine runs the operators, in memory of its own. Its plugin replaces them when a stage is created,
   * after Apportion's rules, so plans do not show it.
   */
  def hasOtherEngine(sparkContext: SparkContext): Boolean =
    sparkContext.conf.get(PLUGINS).exists(name => EnginePlugins.exists(name.endsWith))

  /** Gluten, the RAPIDS Accelerator and Comet. */
  private val EnginePlugins = Seq(".GlutenPlugin", "com.nvidia.spark.SQLPlugin", ".CometPlugin")

  /** Number of subpartitions up to which Spark keeps the exact size of each. */
  def exactSizesUpTo(sparkContext: SparkContext): Int =
    sparkContext.conf.get(SHUFFLE_MIN_NUM_PARTS_TO_HIGHLY_COMPRESS)

  /** Number of tasks of the default resource profile that the registered executors can run at the same time. */
  def slots(sparkContext: SparkContext): Int =
    sparkContext.schedulerBackend.maxNumConcurrentTasks(profile(sparkContext))

  /** [[slots]], at most one second old. */
  val recentSlots: SparkContext => Int = new Recent(slots)

  /**
   * [[recentSlots]], shared evenly with the other queries that have tasks to run; at least 1 if there are slots. Spark's
   * scheduler may give a query more or fewer.
   */
  def shareOfSlots(sparkContext: SparkContext): Int = {
    val slots = recentSlots(sparkContext)
    val others = recentQueries(sparkContext).filterNot(ActiveQueries.current(sparkContext).contains)
    (slots / (others.size + 1)).max(slots.min(1))
  }

  private val recentQueries = new Recent(ActiveQueries.names)

  /** Whether Spark keeps rows outside of the heap. */
  def isOffHeap(sparkContext: SparkContext): Boolean = sparkContext.conf.get(MEMORY_OFFHEAP_ENABLED)

  /**
   * Bytes of execution memory that a task can get if all slots of its executor are busy, and the number of these slots;
   * `None` while no executor is registered. It is at most one second old. Spark shares the memory evenly between running tasks
   * (`ExecutionMemoryPool`). Cached blocks keep their memory up to `spark.memory.storageFraction`.
   */
  val recentTaskMemory: SparkContext => Option[(Long, Int)] = new Recent(taskMemory)

  private def taskMemory(sparkContext: SparkContext): Option[(Long, Int)] = {
    val conf = sparkContext.conf
    val offHeap = if (isOffHeap(sparkContext)) conf.get(MEMORY_OFFHEAP_SIZE) else 0L
    val stored = conf.get(MEMORY_STORAGE_FRACTION)
    val perExecutor = activeExecutors(sparkContext).map { executor =>
      executor.memoryMetrics match {
        // Rows are either all in the heap or all outside of it (`MemoryManager.tungstenMemoryMode`).
        case Some(memory) if offHeap > 0 =>
          free(memory.totalOffHeapStorageMemory, memory.usedOffHeapStorageMemory, stored)
        case Some(memory) => free(memory.totalOnHeapStorageMemory, memory.usedOnHeapStorageMemory, stored)
        case None         => executor.maxMemory
      }
    }
    val slots = slotsPerExecutor(sparkContext)
    perExecutor.filter(_ > 0).minOption.map(bytes => (bytes / slots, slots))
  }

  /** It is rounded to sixteenths, so that small broadcasts do not change decisions. */
  private def free(total: Long, used: Long, storageFraction: Double): Long = {
    val free = total - used.min((total * storageFraction).toLong)
    math.round(16.0 * free / total.max(1)) * total / 16
  }

  /** Slots of one executor: the mean of registered executors, rounded up, else the configured number; at least 1. */
  def slotsPerExecutor(sparkContext: SparkContext): Int = {
    val executors = activeExecutors(sparkContext).size
    val perExecutor =
      if (executors > 0) (slots(sparkContext) + executors - 1) / executors else slotsByConf(sparkContext)
    perExecutor.max(1)
  }

  /** Whether dynamic allocation requests executors for waiting tasks. */
  def isDynamic(sparkContext: SparkContext): Boolean =
    sparkContext.conf.get(DYN_ALLOCATION_ENABLED) && !sparkContext.isLocal

  /** Whether Apportion can request executors from the cluster manager, or from dynamic allocation. */
  def canBeAsked(sparkContext: SparkContext): Boolean =
    if (isDynamic(sparkContext)) sparkContext.executorAllocationManager.isDefined
    else sparkContext.schedulerBackend.isInstanceOf[ExecutorAllocationClient]

  private[apportion] def profile(sparkContext: SparkContext): ResourceProfile =
    sparkContext.resourceProfileManager.defaultResourceProfile

  private def slotsByConf(sparkContext: SparkContext): Int = {
    val conf = sparkContext.conf
    def number(key: String): Double = conf.getOption(key).fold(1.0)(_.toDouble)
    // From Spark 4.3 on, CPUs per task can be a fraction.
    (number(EXECUTOR_CORES.key) / number(CPUS_PER_TASK.key)).toInt
  }

  private[apportion] def activeExecutors(sparkContext: SparkContext) =
    sparkContext.statusStore
      .executorList(activeOnly = true)
      .filter(executor => sparkContext.isLocal || executor.id != SparkContext.DRIVER_IDENTIFIER)
}

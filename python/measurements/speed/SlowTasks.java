import java.util.Map;

import org.apache.spark.TaskContext;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.PluginContext;
import org.apache.spark.api.plugin.SparkPlugin;
import org.apache.spark.executor.TaskMetrics;

/**
 * Makes tasks wait at their end for each byte that they have read, so that few cores can run many slots.
 *
 * Spark calls the plugin in the thread of the task before it reports the end of the task (Executor.TaskRunner). The
 * thread has no TaskContext any more then.
 */
public class SlowTasks implements SparkPlugin {
  static final String BYTES_PER_SECOND = "spark.slowTasks.bytesPerSecond";

  @Override
  public DriverPlugin driverPlugin() {
    return null;
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new ExecutorPlugin() {
      private final ThreadLocal<TaskMetrics> running = new ThreadLocal<>();
      private double bytesPerSecond;

      @Override
      public void init(PluginContext context, Map<String, String> conf) {
        bytesPerSecond = context.conf().getDouble(BYTES_PER_SECOND, Double.POSITIVE_INFINITY);
      }

      @Override
      public void onTaskStart() {
        running.set(TaskContext.get().taskMetrics());
      }

      @Override
      public void onTaskSucceeded() {
        TaskMetrics metrics = running.get();
        long bytes = metrics.inputMetrics().bytesRead() + metrics.shuffleReadMetrics().totalBytesRead();
        try {
          Thread.sleep((long) (1000 * bytes / bytesPerSecond));
        } catch (InterruptedException stopped) {
          Thread.currentThread().interrupt();
        }
      }
    };
  }
}

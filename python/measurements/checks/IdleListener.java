import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

/** Does nothing. Spark registers a configured listener again for each new session. */
public class IdleListener implements QueryExecutionListener {
  @Override
  public void onSuccess(String name, QueryExecution execution, long nanoseconds) {}

  @Override
  public void onFailure(String name, QueryExecution execution, Exception exception) {}
}

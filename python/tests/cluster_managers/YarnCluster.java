import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/**
 * YARN's ResourceManager and NodeManagers in one process, as in Hadoop's own tests.
 *
 * The arguments are the number of NodeManagers, and the file to which it writes its configuration when it is ready.
 */
public class YarnCluster {
  public static void main(String[] arguments) throws Exception {
    MiniYARNCluster cluster = new MiniYARNCluster("yarn", Integer.parseInt(arguments[0]), 1, 1);
    cluster.init(new YarnConfiguration());
    cluster.start();
    Path file = Path.of(arguments[1]);
    Path part = file.resolveSibling("part");
    try (OutputStream output = Files.newOutputStream(part)) {
      cluster.getConfig().writeXml(output);
    }
    Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
    Thread.currentThread().join();
  }
}

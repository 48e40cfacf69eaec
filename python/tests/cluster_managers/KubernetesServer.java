import java.net.InetAddress;
import java.util.HashMap;

import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;

/** A double of Kubernetes's API server, which keeps pods and other objects, and starts no container. */
public class KubernetesServer {
  public static void main(String[] arguments) throws Exception {
    KubernetesMockServer server =
        new KubernetesMockServer(
            new Context(), new MockWebServer(), new HashMap<>(), new KubernetesCrudDispatcher(), false);
    server.start(InetAddress.getLoopbackAddress(), 0);
    System.out.println("http://127.0.0.1:" + server.getPort());
    Thread.currentThread().join();
  }
}

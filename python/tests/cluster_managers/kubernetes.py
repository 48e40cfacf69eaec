"""A double of Kubernetes on this machine: a mock of its API server, and pods that are processes.

Spark's own Kubernetes backend creates, watches and deletes the pods. The mock is of the client
library that Spark uses.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests import programs
from tests.maven import jars
from tests.resources.cluster import HOME, eventually, kill

_PODS = "/api/v1/namespaces/default/pods"
_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_HOST = "127.0.0.1"
# Names of the backend's options, and of the variables with which Spark's image starts it.
_OPTIONS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
}


class KubernetesCluster:
    """A mock of the API server, and a thread that runs the pods as a kubelet does."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        [model] = (HOME / "jars").glob("kubernetes-model-core-*.jar")
        version = model.stem.removeprefix("kubernetes-model-core-")
        fetched = jars(f"io.fabric8:kubernetes-server-mock:{version}")
        # Spark's version of Netty differs from that of the mock.
        names = "kubernetes-*", "jackson-*", "snakeyaml*", "slf4j-api-*"
        client = [str(jar) for name in names for jar in (HOME / "jars").glob(f"{name}.jar")]
        log = directory / "kubernetes.log"
        self._server = programs.start(
            *("java", "-Xmx256m", "-cp", ":".join([*client, f"{fetched}/*"])),
            Path(__file__).with_name("KubernetesServer.java"),
            log=log,
        )
        found = eventually("Kubernetes", lambda: re.search(r"^http://\S+", log.read_text(), re.M))
        self._address = found[0]
        self.url = f"k8s://{self._address}"
        self.conf = {"spark.kubernetes.container.image": "none"}
        self.environment = {"SPARK_LOCAL_IP": _HOST}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stopped = threading.Event()
        self._kubelet = threading.Thread(target=self._run_pods, daemon=True)
        self._kubelet.start()

    def stop(self) -> None:
        self._stopped.set()
        self._kubelet.join()
        for process in [*self._processes.values(), self._server]:
            kill(process)

    def _run_pods(self) -> None:
        while not self._stopped.wait(0.2):
            pods = {pod["metadata"]["name"]: pod for pod in self._request(_PODS)["items"]}
            for name in pods.keys() - self._processes.keys():
                self._processes[name] = self._start(name, pods[name])
                self._set_phase(name, "Running")
            for name, process in self._processes.items():
                if name not in pods:
                    kill(process)
                elif process.poll() is not None and _phase(pods[name]) == "Running":
                    self._set_phase(name, "Failed" if process.returncode else "Succeeded")

    def _start(self, name: str, pod: Any) -> subprocess.Popen[bytes]:
        variables = pod["spec"]["containers"][0]["env"]
        values = {each["name"]: each.get("value", "") for each in variables}
        java = [value for key, value in values.items() if key.startswith("SPARK_JAVA_OPT_")]
        named = itertools.chain(*((option, values[key]) for option, key in _OPTIONS.items()))
        memory = f"-Xmx{values['SPARK_EXECUTOR_MEMORY']}"
        options = [*named, "--hostname", _HOST, "--podName", name]
        return programs.start(
            *("java", *java, memory, "-cp", f"{HOME}/jars/*", _BACKEND, *options),
            log=self.directory / f"{name}.log",
            folder=self.directory,
            environment={**values, **self.environment},
        )

    def _set_phase(self, name: str, phase: str) -> None:
        self._request(f"{_PODS}/{name}/status", {"status": {"phase": phase}})

    def _request(self, path: str, patch: object = None) -> Any:
        """Get an object of the API server, or change one by a merge patch."""
        body = None if patch is None else json.dumps(patch).encode()
        method = "GET" if patch is None else "PATCH"
        headers = {"Content-Type": "application/merge-patch+json"}
        with urlopen(Request(self._address + path, body, headers, method=method)) as answer:
            return json.load(answer)


def _phase(pod: Any) -> Any:
    return pod.get("status", {}).get("phase")

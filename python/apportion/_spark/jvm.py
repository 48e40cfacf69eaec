"""Talks to Spark's JVM. The one module that touches py4j and pyspark's private names."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypedDict

from apportion.errors import ApportionError, QueryError, SettingError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, Row, SparkSession

EXTENSION = "io.apportion.ApportionExtension"
_BRIDGE = "io.apportion.PythonBridge"
_MOST_MILLIS_OF_EVENTS = 60_000
_NO_SUCH_FUNCTION = (
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    # Where another catalog, such as Iceberg's, is the default.
    "MISSING_CATALOG_ABILITY.TABLE_VALUED_FUNCTIONS",
)
_EXPLAINING = "running a query to explain it"


class StageMetrics(TypedDict):
    """What the tasks of one finished stage did, as the extension writes it."""

    stage: int
    name: str
    tasks: int
    readsShuffle: bool
    shuffleReadBytes: int
    largestTaskBytes: int
    """Shuffle bytes that its largest task read."""
    taskMillis: int
    """Run time of all its tasks."""
    blocksWritten: int
    """Of the shuffle that it wrote, tasks times subpartitions; 0 before `watch_stages`."""
    spilledBytes: int
    """Bytes that its tasks spilled to disk."""


class PlanNode(NamedTuple):
    """One operator of a plan that has run."""

    operator: str
    """Spark's class, such as SortMergeJoinExec."""
    files: int
    """Files that it read; 0 unless it scans files."""
    partitions: int
    """Partitions of a partitioned table that it read."""
    dynamic_filters: int
    """Filters on partitions that took their values from the other side of a join."""


def start(options: Mapping[str, str], log: IO[bytes] | None = None) -> None:
    """Start the JVM as pyspark itself would for these options, unless it runs already.

    `log` gets what the JVM writes to its standard output and error, in place of this process's.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    # These are about the client; the JVM is a plain Spark even behind a local Connect server.
    client_only = {"spark.remote", "spark.api.mode"}
    conf = SparkConf().setAll([(k, v) for k, v in options.items() if k not in client_only])
    gateway = None
    if log is not None and SparkContext._gateway is None:
        launch: Any = launch_gateway
        gateway = launch(conf, {"stdout": log, "stderr": log})
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def active_context() -> SparkContext | None:
    """Return the SparkContext of this process, if there is one."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def running_conf() -> dict[str, str]:
    """Return the conf that the SparkContext of this process runs with, if there is one."""
    context = active_context()
    return dict(context.getConf().getAll()) if context else {}


def submitted(key: str) -> str:
    """Return what the JVM was started with for `key`, by whatever way Spark takes it, or ''.

    That is --conf, --jars and the like, PYSPARK_SUBMIT_ARGS and spark-defaults.conf, as
    spark-submit resolved them.
    """
    from pyspark import SparkContext

    return str(_class("java.lang.System", SparkContext._jvm).getProperty(key, ""))


def load(jar: Path) -> None:
    """Make the JVM, which runs already, find the extension's classes: in `jar`, if nowhere else.

    Raises `ApportionError` when its class loader takes no jars.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    if _class(EXTENSION, SparkContext._jvm) is not None:
        return
    # spark.jars is read when the JVM starts, which may be long ago: a program run by
    # spark-submit, or a second session after the first was stopped. Spark's loader takes more.
    thread = _class("java.lang.Thread", SparkContext._jvm).currentThread()
    url = _class("java.io.File", SparkContext._jvm)(str(jar)).toURI().toURL()
    with contextlib.suppress(Py4JError):
        thread.getContextClassLoader().addURL(url)
    if _class(EXTENSION, SparkContext._jvm) is None:
        raise ApportionError(
            f"the JVM that Spark runs in cannot load {EXTENSION}: start Spark with --jars {jar}"
        )


@contextlib.contextmanager
def short_errors() -> Iterator[None]:
    """Raise what Spark raises as a `QueryError`."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        # The analyzer puts the plan behind its message.
        raise QueryError(str(error).split(";\n")[0].strip()) from error
    except Exception as error:
        # What pyspark has no class for is a Py4JJavaError, which a Spark Connect client may not
        # have. The message's other lines are stacks and executor logs.
        exception: Any = getattr(error, "java_exception", None)
        if exception is None:
            raise
        raise QueryError(exception.toString().splitlines()[0]) from error


def decide(spark: SparkSession, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the extension's answer to a request for a decision."""
    from pyspark.errors import IllegalArgumentException

    bridge = _bridge(spark, "decide()")
    try:
        answer = bridge.decide(spark._jsparkSession, json.dumps(request))
    except IllegalArgumentException as refused:
        raise SettingError(str(refused)) from None
    decision: dict[str, Any] = json.loads(answer)
    return decision


def table(spark: SparkSession, function: str, *arguments: str | int) -> list[Row]:
    """Return the rows of one of the extension's table functions; on Spark Connect too.

    Raises `ApportionError` when the session runs without the extension.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import lit

    names = [f"a{i}" for i in range(len(arguments))]
    call = f"{function}({', '.join(f':{name}' for name in names)})"
    values = {name: lit(value) for name, value in zip(names, arguments, strict=True)}
    try:
        return spark.sql(f"SELECT * FROM {call}", values).collect()
    except AnalysisException as error:
        if not any(f"[{condition}]" in str(error) for condition in _NO_SUCH_FUNCTION):
            raise
        raise missing_extension(spark) from None


def watch_stages(spark: SparkSession) -> None:
    """Have the blocks counted that stages write from now on, for `stage_metrics`."""
    _bridge(spark, "stage metrics").watchStages(spark._jsparkSession)


def stage_metrics(spark: SparkSession, job_group: str) -> list[StageMetrics]:
    """Return what the tasks of each finished stage of the job group did."""
    answer = _bridge(spark, "stage metrics").stageMetrics(spark._jsparkSession, job_group)
    metrics: list[StageMetrics] = json.loads(answer)
    store = spark._jsparkSession.sparkContext().statusStore()
    for stage in metrics:
        stage["spilledBytes"] = store.lastStageAttempt(stage["stage"]).diskBytesSpilled()
    return metrics


def executed_plan(result: DataFrame) -> Iterator[PlanNode]:
    """Yield the operators of the plan that a collected DataFrame ran, subqueries included.

    A reused exchange or subquery is one operator: what it reuses is yielded once. Spark's class
    names and fields are those of 3.5 to 4.2.
    """
    waiting = [result._jdf.queryExecution().executedPlan()]
    seen = set()
    while waiting:
        plan = waiting.pop()
        operator = plan.getClass().getSimpleName()
        if operator.endswith("QueryStageExec"):
            waiting.append(plan.plan())
            continue
        if operator == "AdaptiveSparkPlanExec":
            waiting.append(plan.executedPlan())
            continue
        # A subquery that two filters share is one object. The ids of query stages are others.
        if plan.id() in seen:
            continue
        seen.add(plan.id())
        yield PlanNode(
            operator,
            files=_metric(plan, "numFiles"),
            partitions=_metric(plan, "numPartitions") if "Scan" in operator else 0,
            dynamic_filters=_dynamic_filters(plan, operator),
        )
        if not operator.startswith("Reused"):
            waiting.extend(_elements(plan.children()))
            waiting.extend(_elements(plan.subqueries()))


@contextlib.contextmanager
def event_log(spark: SparkSession, directory: Path) -> Iterator[None]:
    """Write the events of the block to one file in `directory`, whatever `spark.eventLog` says.

    Raises `ApportionError` for a Spark Connect client.
    """
    if not is_classic(spark):
        raise _not_classic(_EXPLAINING)
    jvm: Any = spark._jvm
    context = spark._jsparkSession.sparkContext()
    conf = _class("org.apache.spark.SparkConf", jvm)(False)
    conf.set("spark.eventLog.compress", "false").set("spark.eventLog.rolling.enabled", "false")
    listener = _class("org.apache.spark.scheduler.EventLoggingListener", jvm)(
        context.applicationId(),
        _class("scala.Option", jvm).empty(),
        _class("java.io.File", jvm)(str(directory)).toURI(),
        conf,
    )
    listener.start()
    bus = context.listenerBus()
    bus.addToEventLogQueue(listener)
    try:
        yield
        # What ran has ended, but its last events may be on their way.
        bus.waitUntilEmpty(_MOST_MILLIS_OF_EVENTS)
    finally:
        bus.removeListener(listener)
        listener.stop()


@contextlib.contextmanager
def job_description(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """Yield what sets the description of the next jobs, until the end of the block.

    Raises `ApportionError` for a Spark Connect client.
    """
    if not is_classic(spark):
        raise _not_classic(_EXPLAINING)
    context = spark.sparkContext
    try:
        yield context.setJobDescription
    finally:
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def session_conf(spark: SparkSession) -> dict[str, str]:
    """Return all that is set in a session; on Spark Connect too."""
    if hasattr(spark.conf, "getAll"):
        return spark.conf.getAll
    # pyspark 3.5 has none. What looks like a secret is redacted there.
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def java_version(spark: SparkSession) -> str:
    """Return the version of the Java that a classic session runs on, such as `17.0.15`."""
    return str(_class("java.lang.System", spark._jvm).getProperty("java.version"))


def process_id(spark: SparkSession) -> int:
    """Return the process id of a classic session's driver."""
    return int(_class("java.lang.ProcessHandle", spark._jvm).current().pid())


def listeners(spark: SparkSession) -> int:
    """Return how many listeners are on the listener bus of a classic session."""
    return int(spark._jsparkSession.sparkContext().listenerBus().listeners().size())


def extension_places(spark: SparkSession) -> list[str]:
    """Return the jars and folders in which the JVM of a classic session finds the extension."""
    loader = _class("java.lang.Thread", spark._jvm).currentThread().getContextClassLoader()
    entry = EXTENSION.replace(".", "/") + ".class"
    found = loader.getResources(entry)
    places = []
    while found.hasMoreElements():
        url = found.nextElement().toString()
        places.append(url.removeprefix("jar:").removesuffix(entry).removesuffix("!/"))
    return places


def missing_extension(spark: SparkSession | None = None) -> ApportionError:
    """Return the error for a session, or the one that runs, without the extension."""
    if spark is not None and not is_classic(spark):
        return ApportionError(
            "the Spark Connect server runs without Apportion's extension: start it with "
            f"--jars <the path that `apportion jar` prints> --conf spark.sql.extensions={EXTENSION}"
        )
    return ApportionError(
        "this Spark session runs without Apportion's extension. Stop it (spark.stop()), and make "
        "one with apportion.get_or_create() or "
        "apportion.configure(SparkSession.builder).getOrCreate()"
    )


def is_classic(spark: SparkSession) -> bool:
    """Whether a session has a JVM of its own: it is no Spark Connect client."""
    # A Connect client has the attribute too, and raises AttributeError.
    return hasattr(spark, "_jvm")


def _metric(plan: Any, name: str) -> int:
    found = plan.metrics().get(name)
    return int(found.get().value()) if found.isDefined() else 0


def _dynamic_filters(plan: Any, operator: str) -> int:
    filters = {"FileSourceScanExec": "partitionFilters", "BatchScanExec": "runtimeFilters"}
    if operator not in filters:
        return 0
    found = [
        each.child().getClass().getSimpleName()
        for each in _elements(getattr(plan, filters[operator])())
        if each.getClass().getSimpleName() == "DynamicPruningExpression"
    ]
    # PlanAdaptiveDynamicPruningFilters puts the literal true where pruning would not pay.
    return len([name for name in found if name != "Literal"])


def _elements(values: Any) -> list[Any]:
    return [values.apply(place) for place in range(values.size())]


def _not_classic(what: str) -> ApportionError:
    return ApportionError(
        f"{what} needs a classic Spark session, and this one is a Spark Connect client. "
        "decisions() works on both"
    )


def _bridge(spark: SparkSession, what: str) -> Any:
    if not is_classic(spark):
        raise _not_classic(what)
    bridge = _class(_BRIDGE, spark._jvm)
    if bridge is None:
        raise missing_extension()
    return bridge


def _class(name: str, jvm: Any) -> Any:
    """Return the Java class, or None when the JVM does not find it."""
    from py4j.java_gateway import JavaClass
    from py4j.protocol import Py4JError

    try:
        found = getattr(jvm, name)
    except Py4JError:
        return None
    # py4j takes an unknown name for a package.
    return found if isinstance(found, JavaClass) else None

"""Access to Spark's JVM. Only this module uses py4j."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypedDict

from apportion.errors import ApportionError, QueryError, SettingError, SparkEndedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import DataType

Progress = dict[str, Any]
"""Parsed JSON of Spark's `StreamingQueryProgress`."""
FEW_ROWS = 1000
"""Above this number, the rows of a result are not collected."""
EXTENSION = "io.apportion.ApportionExtension"
_BRIDGE = "io.apportion.PythonBridge"
_MOST_MILLIS_OF_EVENTS = 60_000
_NO_SUCH_FUNCTION = (
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    # Spark raises this if another catalog, such as Iceberg's, is the default.
    "MISSING_CATALOG_ABILITY.TABLE_VALUED_FUNCTIONS",
)
_CALENDAR_INTERVAL = re.compile(r"\binterval(?=[,>]|$)")


class StageMetrics(TypedDict):
    """Metrics of one finished stage, as the extension writes them."""

    stage: int
    name: str
    tasks: int
    readsShuffle: bool
    shuffleReadBytes: int
    largestTaskBytes: int
    """Shuffle bytes read by the largest task."""
    taskMillis: int
    """Total run time of the tasks."""
    blocksWritten: int
    """Shuffle blocks written; 0 before `watch_stages`. Without adaptive writes, tasks times
    subpartitions."""
    spilledBytes: int
    """Bytes that the tasks spilled to disk."""


def start(builder: SparkSession.Builder, log: IO[bytes] | None = None) -> None:
    """Start the JVM with the options of a builder as pyspark does, unless it runs already.

    The JVM writes its standard output and error to `log` if it is given.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    # Only the client uses these: the JVM is a plain Spark even behind a local Connect server.
    client_only = {"spark.remote", "spark.api.mode"}
    options = builder._options.items()
    conf = SparkConf().setAll([(k, v) for k, v in options if k not in client_only])
    gateway = None
    if log is not None and SparkContext._gateway is None:
        launch: Any = launch_gateway
        gateway = launch(conf, {"stdout": log, "stderr": log})
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def running_conf() -> dict[str, str]:
    """Return the conf of the SparkContext of this process, empty if there is none."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return dict(context.getConf().getAll()) if context else {}


def submitted(key: str) -> str:
    """Return the value of `key` that the JVM was started with, or ''.

    spark-submit resolves it from its options (--conf, --jars, ...), PYSPARK_SUBMIT_ARGS and
    spark-defaults.conf.
    """
    from pyspark import SparkContext

    return str(_class("java.lang.System", SparkContext._jvm).getProperty(key, ""))


def load(jar: Path) -> None:
    """Add `jar` to the running JVM, unless the extension's classes are already loadable.

    Raises `ApportionError` if the JVM's class loader does not accept jars.
    """
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    if _class(EXTENSION, SparkContext._jvm) is not None:
        return
    # Spark reads spark.jars only when the JVM starts. In a program run by spark-submit, or in a
    # second session, the JVM runs already, but Spark's class loader accepts more jars.
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
    """Convert Spark's exceptions to `QueryError`, and lost connections to `SparkEndedError`."""
    from pyspark.errors import PySparkException

    lost: tuple[type[Exception], ...] = (ConnectionError,)
    # A Spark Connect client has no py4j.
    with contextlib.suppress(ImportError):
        from py4j.protocol import Py4JNetworkError

        lost = (Py4JNetworkError, ConnectionError)
    try:
        yield
    except lost as error:
        raise SparkEndedError(f"Spark has ended: {error}") from error
    except PySparkException as error:
        # The analyzer appends the plan to its message.
        raise QueryError(str(error).split(";\n")[0].strip()) from error
    except Exception as error:
        # If pyspark has no class for an exception, it raises Py4JJavaError, which a Spark Connect
        # client cannot always import.
        if not hasattr(error, "java_exception"):
            raise
        raise QueryError(first_line(error)) from error


def collect(frame: DataFrame) -> list[Row]:
    """Return the rows. Raises Spark's errors, and `QueryError` for a value that Python lacks."""
    from pyspark.errors import PySparkNotImplementedError

    try:
        return frame.collect()
    except (ValueError, OverflowError, PySparkNotImplementedError) as error:
        # Python's dates are in the years 1 to 9999, and it has no interval of months.
        message = f"Python cannot hold a value of the result ({error}): cast its column to string"
        raise QueryError(message) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, which is not a stack or an executor log."""
    # The first line of py4j's error only names the call.
    exception: Any = getattr(error, "java_exception", None)
    text = str(error) if exception is None else str(exception.toString())
    return (text.strip() or type(error).__name__).splitlines()[0]


def condition(error: BaseException) -> str:
    """Return Spark's condition of an error, such as TABLE_OR_VIEW_NOT_FOUND; empty without one."""
    exception: Any = getattr(error, "java_exception", error)
    with contextlib.suppress(Exception):
        return str(exception.getCondition())
    return ""


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


def report_stream(spark: SparkSession, record: str) -> None:
    """Add a record, as JSON, to `apportion_streams()`, Spark's UI and the event log.

    Raises `ApportionError` with the name of the field if the record is wrong.
    """
    from pyspark.errors import IllegalArgumentException

    bridge = _bridge(spark, "the record of a stream")
    try:
        bridge.reportStream(spark._jsparkSession, record)
    except IllegalArgumentException as refused:
        raise ApportionError(str(refused)) from None


def table(spark: SparkSession, function: str, *arguments: str | int | None) -> list[Row]:
    """Return the rows of one of the extension's table functions. Works on Spark Connect too.

    Raises `ApportionError` if the session runs without the extension, or has been stopped.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql.functions import lit

    names = [f"a{i}" for i in range(len(arguments))]
    call = f"{function}({', '.join(f':{name}' for name in names)})"
    try:
        values = {name: lit(value) for name, value in zip(names, arguments, strict=True)}
        return spark.sql(f"SELECT * FROM {call}", values).collect()
    except AnalysisException as error:
        if not any(f"[{condition}]" in str(error) for condition in _NO_SUCH_FUNCTION):
            raise
        raise missing_extension(spark) from None
    except Exception:
        # pyspark deletes it when the session stops.
        if not is_classic(spark) or spark.sparkContext._jsc is not None:
            raise
        raise ApportionError(
            "this Spark session has been stopped: start a new one with apportion.get_or_create()"
        ) from None


def watch_stages(spark: SparkSession) -> None:
    """Count the blocks that stages write from now on, for `stage_metrics`."""
    _bridge(spark, "stage metrics").watchStages(spark._jsparkSession)


def stage_metrics(spark: SparkSession, job_group: str) -> list[StageMetrics]:
    """Return the metrics of each finished stage of the job group."""
    bridge = _bridge(spark, "stage metrics")
    metrics: list[StageMetrics] = json.loads(bridge.stageMetrics(spark._jsparkSession, job_group))
    return metrics


def final_plan(result: DataFrame) -> list[dict[str, Any]]:
    """Return the operators of a DataFrame's plan after it ran, and of its subqueries.

    Each has "operator" (name of Spark's class), and numbers of "files", of "partitions" of tables,
    and of "dynamicFilters" (partition filters with values from the other side of a join).
    """
    bridge = _bridge(result.sparkSession, "the plan of a query")
    plan: list[dict[str, Any]] = json.loads(bridge.finalPlan(result._jdf.queryExecution()))
    return plan


def has_at_most(result: DataFrame, rows: int) -> bool:
    """Return whether the plan of a DataFrame shows that it has few rows, before it runs."""
    plan = result._jdf.queryExecution().optimizedPlan()
    most = plan.maxRows()
    # Spark has run a command already, and has collected its rows.
    is_command = plan.getClass().getSimpleName() == "CommandResult"
    return is_command or (most.isDefined() and int(most.get()) <= rows)


def has_calendar_interval(kind: DataType) -> bool:
    """Return whether a type is or contains an interval of months, days and microseconds."""
    return _CALENDAR_INTERVAL.search(kind.simpleString()) is not None


def discard(result: DataFrame) -> None:
    """Run a DataFrame in a classic session and discard its rows where they are."""
    if has_calendar_interval(result.schema):
        # No table can have this type, not even one that discards its rows.
        execute(result)
    else:
        result.write.format("noop").mode("overwrite").save()


def discard_and_count(result: DataFrame) -> int:
    """Run a DataFrame as `discard` does, and return the number of its rows."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    if has_calendar_interval(result.schema):
        return execute(result)
    observation = Observation()
    discard(result.observe(observation, count(lit(1)).alias("rows")))
    return int(observation.get["rows"])


def execute(result: DataFrame) -> int:
    """Run the plan of this DataFrame, so that `final_plan` has it. Return the number of rows.

    A write has a plan of its own.
    """
    return int(result._jdf.queryExecution().toRdd().count())


@contextlib.contextmanager
def event_log(spark: SparkSession, directory: Path) -> Iterator[None]:
    """Write the events of a classic session to one file in `directory`, whatever its conf is."""
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
        # The jobs have ended, but their last events may still be in the queue.
        bus.waitUntilEmpty(_MOST_MILLIS_OF_EVENTS)
    finally:
        bus.removeListener(listener)
        listener.stop()


def session_conf(spark: SparkSession) -> dict[str, str]:
    """Return all confs that are set in a session. Works on Spark Connect too."""
    if hasattr(spark.conf, "getAll"):
        return spark.conf.getAll
    # pyspark 3.5 has no getAll. SET redacts values that look like secrets.
    return {row["key"]: row["value"] for row in spark.sql("SET").collect()}


def java_version(spark: SparkSession) -> str:
    """Return the Java version of a classic session, such as `17.0.15`."""
    return str(_class("java.lang.System", spark._jvm).getProperty("java.version"))


def extension_places(spark: SparkSession) -> list[str]:
    """Return the jars and folders that contain the extension in the JVM of a classic session."""
    loader = _class("java.lang.Thread", spark._jvm).currentThread().getContextClassLoader()
    entry = EXTENSION.replace(".", "/") + ".class"
    resources = loader.getResources(entry)
    places = []
    while resources.hasMoreElements():
        url = resources.nextElement().toString()
        places.append(url.removeprefix("jar:").removesuffix(entry).removesuffix("!/"))
    return places


def missing_extension(spark: SparkSession | None = None) -> ApportionError:
    """Return the error for `spark`, or for the running session, without the extension."""
    if spark is not None and not is_classic(spark):
        return ApportionError(
            "the Spark Connect server runs without Apportion's extension: start it with "
            f"--jars <the path that `apportion jar` prints> --conf spark.sql.extensions={EXTENSION}"
        )
    return ApportionError(
        "this Spark session runs without Apportion's extension. Stop it (spark.stop()), then start "
        "a new one with apportion.get_or_create() or "
        "apportion.configure(SparkSession.builder).getOrCreate()"
    )


def is_classic(spark: SparkSession) -> bool:
    """Return whether this is a classic session, not a Spark Connect client."""
    # A Connect client defines the attribute too, but reading it raises AttributeError.
    return hasattr(spark, "_jvm")


def most_slots(spark: SparkSession) -> int:
    """Return the task slots that the application has, or can get from the cluster manager."""
    return int(_bridge(spark, "the slots of a stream").mostSlots(spark._jsparkSession))


class CheckpointFiles:
    """Files of a streaming checkpoint, on any file system that Spark can write to.

    Names are relative to the checkpoint. Spark's own file manager writes each file as a whole.
    """

    def __init__(self, spark: SparkSession, location: str) -> None:
        jvm: Any = spark._jvm
        self._path = _class("org.apache.hadoop.fs.Path", jvm)
        self._text = _class("org.apache.commons.io.IOUtils", jvm)
        self._root = self._path(location)
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        manager = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$"
        companion = _class("java.lang.Class", jvm).forName(manager).getField("MODULE$").get(None)
        self._manager = companion.create(self._root, conf)

    def list(self, folder: str) -> list[tuple[str, bool]]:
        """Return (name, is a folder) for each entry; empty if the folder does not exist."""
        path = self._at(folder)
        if not self._manager.exists(path):
            return []
        statuses = self._manager.list(path)
        return [(str(each.getPath().getName()), bool(each.isDirectory())) for each in statuses]

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None if it does not exist."""
        path = self._at(name)
        if not self._manager.exists(path):
            return None
        with contextlib.closing(self._manager.open(path)) as stream:
            return str(self._text.toString(stream, "UTF-8"))

    def write(self, name: str, text: str) -> None:
        """Write a file, or replace it. Other processes see the old file or the new one."""
        path = self._at(name)
        self._manager.mkdirs(path.getParent())
        stream = self._manager.createAtomic(path, True)
        # Without the call of close, the file does not appear.
        stream.write(bytearray(text.encode()))
        stream.close()

    def delete(self, name: str) -> None:
        """Delete a file, unless it does not exist."""
        self._manager.delete(self._at(name))

    def _at(self, name: str) -> Any:
        return self._path(self._root, name)


def await_batch(
    spark: SparkSession, query: StreamingQuery, after: str | None, seconds: float
) -> dict[str, Any]:
    """Wait for a batch of a query that is later than the timestamp `after`.

    Returns "ended" (whether the query has ended), "progress" (Spark's reports, oldest first) and
    "bytes" (those of the last report: "shuffled" per state partition, and "broadcast"; or None).
    """
    bridge = _bridge(spark, "the batches of a stream")
    answer: dict[str, Any] = json.loads(
        bridge.awaitBatch(spark._jsparkSession, query._jsq, after, round(seconds * 1000))
    )
    return answer


def repartition_state(spark: SparkSession, checkpoint: str, partitions: int) -> None:
    """Change the number of state partitions of a stopped streaming query.

    Raises Spark's own error if the state cannot be repartitioned.
    """
    # Tasks need the StateStoreCoordinator, which Spark creates with the query manager.
    spark._jsparkSession.streams()
    spark._streamingCheckpointManager.repartition(checkpoint, partitions)


def add_empty_file_batch(spark: SparkSession, sink: str, batch: int) -> None:
    """Add a batch without files to the log of a file sink, unless the log has the batch.

    Spark 4.2 writes no entry for the batch that repartitions the state. Later batches and readers
    then fail with BATCH_METADATA_NOT_FOUND (CompactibleFileStreamLog).
    """
    jvm: Any = spark._jvm
    package = "org.apache.spark.sql.execution.streaming.sinks"
    none = _class("scala.Option", jvm).empty()
    log = _class(f"{package}.FileStreamSinkLog", jvm)(1, spark._jsparkSession, sink, none)
    status = _class(f"{package}.SinkFileStatus", jvm)
    log.add(batch, spark._sc._gateway.new_array(status, 0))  # type: ignore[union-attr]


def check_classic(spark: SparkSession, what: str) -> None:
    """Raise `ApportionError` for a Spark Connect client that calls for `what`."""
    if not is_classic(spark):
        raise ApportionError(
            f"{what} needs a classic Spark session, and this one is a Spark Connect client. "
            "Use decisions(), which works on both"
        )


def _bridge(spark: SparkSession, what: str) -> Any:
    check_classic(spark, what)
    bridge = _class(_BRIDGE, spark._jvm)
    if bridge is None:
        raise missing_extension()
    return bridge


def _class(name: str, jvm: Any) -> Any:
    """Return the Java class, or None if the JVM does not find it."""
    from py4j.java_gateway import JavaClass
    from py4j.protocol import Py4JError

    try:
        java_class = getattr(jvm, name)
    except Py4JError:
        return None
    # py4j returns a package for an unknown name.
    return java_class if isinstance(java_class, JavaClass) else None

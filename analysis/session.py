"""Spark, as an analysis uses it: started once, quiet, bounded in memory, and gone when this process is gone.

The JVM reads its standard input from a pipe that only this process holds; when the process ends, however it ends, the
pipe closes and the JVM exits. Whatever Java and Spark print goes to `spark.log` in the work folder.

A quarter of what a short analysis costs is the reading of classes, always the same. `make setup` has them laid by in an
archive of Java's, which later sessions load at once. One that does not fit this Java or these jars is ignored by Java.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from analysis.errors import EngineError, InputError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
MEMORY_MB = 1024
_LOG4J = Path(__file__).parent / "assets" / "log4j2.properties"
_EXIT_WAIT_S = 10
_LAYING_BY_WAIT_S = 300
# The whole analysis of an ordinary run lasts seconds: the quick compiler and the collector without threads start
# fastest (2.5 s instead of 4.5 s to a session on two cores). Above this much input the optimising compiler pays.
_QUICK_JVM_INPUT_BYTES_MAX = 256 << 20
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CLASSES = Path(sys.prefix) / "share" / "brokerlab" / "spark.jsa"
_UNFINISHED = _CLASSES.with_suffix(".new")


@contextmanager
def spark_session(
    work: Path,
    *,
    master: str = LOCAL_MASTER,
    input_bytes: int = 0,
    memory_mb: int = MEMORY_MB,
    lays_by: bool = False,
) -> Iterator[SparkSession]:
    """A session whose temporary files live in `work`; a process can have one. Leaving the block ends the JVM, and with
    `lays_by` its classes are laid by for every later session.

    Raises InputError without Java, EngineError when Spark does not start.
    """
    _require_java()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    log = work / "spark.log"
    conf = _configuration(work, master, input_bytes, memory_mb, _archive_options(lays_by=lays_by))
    with log.open("wb") as output:
        try:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise EngineError(f"Spark did not start: {_complaint(log)}") from error
    jvm: subprocess.Popen[bytes] = gateway.proc
    try:
        context = _context(conf, gateway, master, log)
        with _interruptible(jvm):
            yield SparkSession(context)
            context.stop()
    finally:
        _end(jvm, _LAYING_BY_WAIT_S if lays_by else _EXIT_WAIT_S)
    if lays_by:
        _laid_by()


def _archive_options(*, lays_by: bool) -> list[str]:
    if lays_by:
        _UNFINISHED.parent.mkdir(parents=True, exist_ok=True)
        _UNFINISHED.unlink(missing_ok=True)
        return [f"-XX:ArchiveClassesAtExit={_UNFINISHED}"]
    # Java says of an archive that it ignores it, and why; in `spark.log` that would be the first complaint.
    return [f"-XX:SharedArchiveFile={_CLASSES}", "-Xlog:disable"] if _CLASSES.exists() else []


def _laid_by() -> None:
    if not _UNFINISHED.exists():
        raise EngineError("this Java lays no classes by; analyses work without, and start later")
    _UNFINISHED.replace(_CLASSES)


@contextmanager
def _interruptible(jvm: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C ends the JVM, and is a KeyboardInterrupt whatever else comes of that.

    PySpark's own handler asks the JVM to cancel its jobs, and where the exception that follows is raised in a callback
    of py4j's, it is lost: all that is left is an error of the job.
    """
    interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        jvm.kill()
        raise KeyboardInterrupt

    handles = threading.current_thread() is threading.main_thread()
    if handles:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except BaseException:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        if handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if found is None:
        place = f"JAVA_HOME ({home})" if home else "the PATH"
        raise InputError(f"no java in {place}: set JAVA_HOME to Java 17 or newer, or use `brokerlab analyze`")


def _configuration(work: Path, master: str, input_bytes: int, memory_mb: int, archive: Sequence[str]) -> SparkConf:
    from pyspark import SparkConf

    quick = _QUICK_JVM if input_bytes <= _QUICK_JVM_INPUT_BYTES_MAX else ""
    java = [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", "-XX:-UsePerfData", f"-Djava.io.tmpdir={work}"]
    settings = {
        "spark.master": master,
        "spark.app.name": "brokerlab-analysis",
        "spark.driver.memory": f"{memory_mb}m",
        "spark.executor.memory": f"{memory_mb}m",
        "spark.driver.extraJavaOptions": " ".join([*java, *archive, quick]).rstrip(),
        "spark.executor.extraJavaOptions": quick,
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # What is shuffled are sums by trial or by histogram bucket: few rows, whatever the number of requests.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        # A run leaves hundreds of small files: read many in one task.
        "spark.sql.files.openCostInBytes": "65536",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _context(conf: SparkConf, gateway: Any, master: str, log: Path) -> SparkContext:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark import SparkContext

    try:
        return SparkContext(conf=conf, gateway=gateway)
    except Py4JError as error:
        raise EngineError(f"Spark did not start on {master}: {_complaint(log)}") from error


def _complaint(log: Path) -> str:
    """The first thing that Java or Spark said which is no mere warning, for an error's one line."""
    lines = (line.strip() for line in log.read_text(errors="replace").splitlines())
    return next((line for line in lines if line and not line.startswith("WARN")), "it said nothing")


def _end(jvm: subprocess.Popen[bytes], within_s: float) -> None:
    assert jvm.stdin is not None, "the gateway is always started with a pipe"
    jvm.stdin.close()
    try:
        jvm.wait(within_s)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()

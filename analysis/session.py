"""Spark, as an analysis uses it: started once, quiet, bounded in memory, and gone when this process is gone.

The JVM reads its standard input from a pipe that only this process holds; when the process ends, even by kill -9, the
pipe closes and the JVM exits. All output of Java and Spark goes to a log in the work folder; where Spark fails, the log
is kept and the error names its place.

A local master lives on the loopback interface alone: neither this machine's name nor `localhost` need resolve.

A short analysis spends a quarter of its time reading the same classes. `make setup` has Java archive them, and later
sessions load the archive. Java ignores an archive that does not fit this Java or these jars.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import gaierror
from types import FrameType
from typing import TYPE_CHECKING, Any

from analysis.errors import EngineError, InputError, cause

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"
MEMORY_MB = 1024
_LOG4J = Path(__file__).parent / "assets" / "log4j2.properties"
_EXIT_WAIT_S = 10
_ARCHIVING_WAIT_S = 300
# An ordinary run's analysis lasts seconds: the quick compiler and the collector without threads start fastest (2.5 s
# instead of 4.5 s to a session on two cores). Above this much input the optimising compiler pays.
_QUICK_JVM_INPUT_BYTES_MAX = 256 << 20
_QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CLASSES = Path(sys.prefix) / "share" / "brokerlab" / "spark.jsa"
_UNFINISHED = _CLASSES.with_suffix(".new")
# Spark looks up this machine's name before it reads its configuration; only these prevent it.
_ON_LOOPBACK = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1"}


@contextmanager
def spark_session(
    work: Path,
    kept_log: Path,
    *,
    master: str = LOCAL_MASTER,
    input_bytes: int = 0,
    memory_mb: int = MEMORY_MB,
    archives: bool = False,
) -> Iterator[SparkSession]:
    """A session whose temporary files live in `work`; a process can have one. Leaving the block ends the JVM, which
    with `archives` writes the archive of classes for every later session.

    Raises InputError without Java, EngineError when Spark does not start. With any EngineError, the block's own too,
    Spark's log is at `kept_log`, and the message says so.
    """
    _require_java()
    kept_log.unlink(missing_ok=True)  # of an earlier failure
    log = work / "spark.log"
    conf = _configuration(work, master, input_bytes, memory_mb, _archive_options(archives=archives))
    exit_wait_s = _ARCHIVING_WAIT_S if archives else _EXIT_WAIT_S
    try:
        with _sockets_in(work, conf, master), _started(conf, master, log, exit_wait_s) as session:
            yield session
    except EngineError as error:
        shutil.move(log, kept_log)
        raise EngineError(f"{error}; Spark's log is {kept_log}") from error
    if archives:
        _publish_archive()


@contextmanager
def _started(conf: SparkConf, master: str, log: Path, exit_wait_s: float) -> Iterator[SparkSession]:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    with log.open("wb") as output, _environment(_ON_LOOPBACK if _is_local(master) else {}):
        try:
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
        except PySparkRuntimeError as error:
            raise EngineError(f"Spark did not start: {cause(log.read_text(errors='replace'))}") from error
    jvm: subprocess.Popen[bytes] = gateway.proc
    try:
        session = _session(conf, gateway, master, log)
        with _interruptible(jvm):
            yield session
            session.sparkContext.stop()
    finally:
        _end(jvm, exit_wait_s)


@contextmanager
def _sockets_in(work: Path, conf: SparkConf, master: str) -> Iterator[None]:
    """Connect Python and a JVM on this machine by Unix sockets: for the others PySpark looks `localhost` up.

    A socket's path may have 107 bytes, which the work folder's may exceed; this process's descriptor of it does not.
    """
    descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    if _is_local(master):
        conf.set("spark.python.unix.domain.socket.enabled", "true")
        conf.set("spark.python.unix.domain.socket.dir", f"/proc/{os.getpid()}/fd/{descriptor}")
    try:
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _environment(added: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a while: PySpark always hands this process's environment to the JVM."""
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _archive_options(*, archives: bool) -> list[str]:
    if archives:
        _UNFINISHED.parent.mkdir(parents=True, exist_ok=True)
        _UNFINISHED.unlink(missing_ok=True)
        return [f"-XX:ArchiveClassesAtExit={_UNFINISHED}"]
    # Java logs that it ignores an archive, and why; in `spark.log` that would be the first complaint.
    return [f"-XX:SharedArchiveFile={_CLASSES}", "-Xlog:disable"] if _CLASSES.exists() else []


def _publish_archive() -> None:
    if not _UNFINISHED.exists():
        raise EngineError("this Java archives no classes; analyses work without, and start later")
    _UNFINISHED.replace(_CLASSES)


@contextmanager
def _interruptible(jvm: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C ends the JVM and becomes a KeyboardInterrupt, whichever error the end of the JVM raises.

    PySpark's own handler asks the JVM to cancel its jobs; a KeyboardInterrupt in a callback of py4j's is then lost, and
    an error of the job takes its place.
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
        # Shuffles move sums by trial or by histogram bucket: few rows for any number of requests.
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        # A run leaves hundreds of small files: read many in one task.
        "spark.sql.files.openCostInBytes": "65536",
    }
    if _is_local(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return SparkConf(loadDefaults=False).setAll(list(settings.items()))


def _session(conf: SparkConf, gateway: Any, master: str, log: Path) -> SparkSession:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    try:
        # A master that does not answer ends the context without an error; the session raises one.
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except Py4JError as error:
        raise EngineError(f"Spark did not start on {master}: {cause(log.read_text(errors='replace'))}") from error
    except gaierror as error:  # of a session on a cluster: see `_sockets_in`
        raise EngineError(f"Spark did not start on {master}: this machine cannot resolve localhost: {error}") from error


def _end(jvm: subprocess.Popen[bytes], within_s: float) -> None:
    assert jvm.stdin is not None, "the gateway is always started with a pipe"
    jvm.stdin.close()
    try:
        jvm.wait(within_s)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()

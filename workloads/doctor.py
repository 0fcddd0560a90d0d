"""The instrument's requirements on this machine, and the one command that mends each missing one."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workloads.errors import UserError
from workloads.processes.java import find_java
from workloads.systems.architectures import programs

if TYPE_CHECKING:
    from collections.abc import Callable

    from workloads.systems.architectures import Program

CLIENTS: Final = ("confluent-kafka", "grpcio", "kazoo")
LIBRARIES: Final = ("pyspark", "pyarrow", "pandas", "matplotlib", "protobuf", "uvloop")
MEMORY_MIN_BYTES: Final = 3 * 1024**3
DISK_MIN_BYTES: Final = 2 * 1024**3
OPEN_FILES_MIN: Final = 1024
SETUP: Final = "make setup"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    found: str  # what is there, or what is wrong
    ok: bool
    mend: str = ""  # the command, where one mends it


def examine(folder: Path) -> list[Finding]:
    """All findings; `folder` is where results would go, whose disk is looked at."""
    return [
        _python(),
        _system(),
        _looked_up("Java", _java, SETUP),
        *(_program(program) for program in programs()),
        *(_package(name) for name in (*LIBRARIES, *CLIENTS)),
        _cores(),
        _memory(),
        _disk(folder),
        _open_files(),
    ]


def _python() -> Finding:
    found = f"{platform.python_version()} at {sys.executable}"
    return Finding("Python", found, sys.version_info >= (3, 11), "install Python 3.11 or newer, then: make setup")


def _system() -> Finding:
    found = f"{platform.system()} {platform.release()} {platform.machine()}"
    return Finding("system", found, sys.platform == "linux", "run it on Linux: costs are read from /proc")


def _java() -> str:
    java = find_java()
    return f"{java.version} from {java.source} at {java.home}"


def _program(program: Program) -> Finding:
    """A requirement of an architecture; one that nobody asked for yet may be missing."""
    found = _looked_up(program.name, lambda: f"{program.version()} in {program.place()}", program.mend)
    return replace(found, ok=found.ok or program.optional)


def _looked_up(name: str, look: Callable[[], str], mend: str) -> Finding:
    try:
        return Finding(name, look(), ok=True)
    except UserError as error:
        return Finding(name, str(error), ok=False, mend=mend)


def _package(name: str) -> Finding:
    try:
        return Finding(name, version(name), ok=True)
    except PackageNotFoundError:
        return Finding(name, "not installed", ok=False, mend=SETUP)


def _cores() -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0]
    found = f"{usable}, load {busy:.1f}"
    return Finding("cores", found, usable >= 2, "give it two cores or more: brokers and clients share them")


def _memory() -> Finding:
    names = ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES")
    total, free = (os.sysconf(name) * os.sysconf("SC_PAGE_SIZE") for name in names)
    found = f"{_gib(total)} GiB, {_gib(free)} GiB of it free"
    return Finding(
        "memory", found, total >= MEMORY_MIN_BYTES, f"{_gib(MEMORY_MIN_BYTES)} GiB are needed, Spark's included"
    )


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    mend = "free some space, or put results elsewhere: brokerlab run --out DIR (a plan of your own: brokerlab plan)"
    return Finding("free disk", f"{_gib(free)} GiB in {folder.resolve()}", free >= DISK_MIN_BYTES, mend)


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    mend = f"ulimit -n {min(hard, 65_536) if hard > 0 else 65_536}"
    return Finding("open files", f"{soft} now, {hard} at most", soft >= OPEN_FILES_MIN, mend)


def _gib(size: int) -> str:
    return f"{size / 1024**3:.1f}"

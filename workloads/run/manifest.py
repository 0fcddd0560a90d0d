"""Where a run comes from: what was asked for, by which code, with which versions, on which machine."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from workloads.processes.java import find_java
from workloads.processes.process import tethered
from workloads.results import SCHEMA_VERSION
from workloads.systems.architectures import row_of

if TYPE_CHECKING:
    from workloads.spec.plan import Plan

PACKAGES: Final = ("brokerlab", "pyspark", "confluent-kafka", "grpcio", "kazoo", "uvloop", "pyarrow")


def new_manifest(plan: Plan) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "spec_hash": plan.spec_hash,
        "profile": plan.profile,
        "seed": plan.seed,
        "architectures": [{**each.as_json(), "system": row_of(each).system} for each in plan.architectures],
        "cells": [asdict(cell) for cell in plan.cells],
        "length": asdict(plan.length),
        "effort": asdict(plan.effort),
        "warmup": plan.warmup,
        "primary": [list(pair) for pair in plan.primary],
        "tries": plan.effort.tries,  # blocks of the run when it last ended; before that, as were asked for at first
        "pin": asdict(plan.pin),
        "hosts": plan.hosts and asdict(plan.hosts),
        "commit": commit(),
        "versions": _versions(plan),
        "machine": machine(),
        "started": now(),
        "ended": None,
        "spent": {},  # seconds of the run's wall time, by what they went into (`workloads.run.wall_time`)
        "blocks": {},  # block -> seconds that it took
        "rounds": {},  # block -> cell -> rounds, as they were decided
        "sustained": {},  # of cells in mode load: settings -> messages/s that every architecture sustains
        "planned": [],  # ids of the trials that have been asked for
    }


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions(plan: Plan) -> dict[str, str]:
    java = find_java()
    found = {"Python": platform.python_version(), "Java": f"{java.version} ({java.source})"}
    for architecture in plan.architectures:
        found |= {program.name: program.version() for program in row_of(architecture).needed()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "load_at_start": os.getloadavg()[0],
        "kernel": platform.version(),
        "scheduling": _scheduling(),
        "governor": _governor(),
        "limits": _limits(),
    }


def _scheduling() -> str:
    """The policy by which the processes of a run share the processors (docs/decisions, 0019)."""
    command = tethered([sys.executable, "-I", "-S", "-c", "import os; print(os.sched_getscheduler(0))"])
    policy = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    names = ("SCHED_OTHER", "SCHED_BATCH", "SCHED_IDLE", "SCHED_FIFO", "SCHED_RR")
    return next((name for name in names if getattr(os, name) == policy), str(policy))


def _governor() -> str:
    """How the processors' frequency is chosen; empty where the machine does not say, as most virtual ones."""
    found = {
        path.read_text().strip() for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    }
    return ", ".join(sorted(found))


def _limits() -> dict[str, str]:
    """The bounds on the run's processes, `unlimited` included: resource limits (soft), and the control group's."""
    named = {
        "open_files": resource.RLIMIT_NOFILE,
        "processes": resource.RLIMIT_NPROC,
        "file_bytes": resource.RLIMIT_FSIZE,
    }
    found = {name: resource.getrlimit(limit)[0] for name, limit in named.items()}
    limits = {name: "unlimited" if soft == resource.RLIM_INFINITY else str(soft) for name, soft in found.items()}
    for name, file in (("cgroup_cpu", "cpu.max"), ("cgroup_memory", "memory.max")):
        if (path := _control_group() / file).exists():
            limits[name] = path.read_text().strip()
    return limits


def _control_group() -> Path:
    """The folder of this process's control group, of version 2; there may be none."""
    own = Path("/proc/self/cgroup").read_text().splitlines()
    below = next((line.removeprefix("0::/") for line in own if line.startswith("0::/")), "none")
    return Path("/sys/fs/cgroup") / below


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def commit() -> str:
    """The commit of the code that runs, with `+changes` where the tree differs; empty outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").exists():
        return ""  # installed, perhaps inside a checkout of something else
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
        changes = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.stdout.strip() + ("+changes" if changes.stdout.strip() else "")

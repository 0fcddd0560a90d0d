"""`brokerlab analyze`: the analysis is a process of its own, so that Spark starts there and nowhere else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", default="results/latest", metavar="DIR",
        help="a results folder, or an address that Spark reads (default: results/latest)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, metavar="DIR", help="where tables, figures and report go (default: DIR)")
    parser.add_argument("--master", metavar="URL", help="a Spark cluster (default: all cores of this machine)")
    parser.epilog = (
        "examples:\n"
        "  brokerlab analyze results/steady-1\n"
        "  brokerlab analyze hdfs://node/runs/steady-1 --out results/steady-1 --master spark://node:7077"
    )


def run(options: argparse.Namespace) -> int:
    return start_analysis("analysis", options.folder, out=options.out, master=options.master)


def analyze(folder: Path) -> int:
    """Analyse a run's folder; return the exit code."""
    return start_analysis("analysis", str(folder))


def start_analysis(module: str, *arguments: str, out: Path | None = None, master: str | None = None) -> int:
    """Run one of the analysis's commands with the Java that was found; it ends when this process does.

    Raises KeyboardInterrupt when it was interrupted and has ended."""
    from workloads.processes.java import with_java
    from workloads.processes.process import tethered
    from workloads.processes.signals import wait_until_told

    command = [sys.executable, "-m", module, *arguments]
    if out is not None:
        command += ["--out", str(out)]
    if master is not None:
        command += ["--master", master]
    return wait_until_told(tethered(command), with_java())

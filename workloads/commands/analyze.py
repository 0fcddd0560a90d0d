"""`brokerlab analyze`: the analysis is a process of its own, so that Spark starts there and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results/latest"), help="default: results/latest")
    parser.add_argument("--master", metavar="URL", help="a Spark cluster (default: all cores of this machine)")
    parser.epilog = "example: brokerlab analyze results/steady-1"


def run(options: argparse.Namespace) -> int:
    return analyze(options.folder, options.master)


def analyze(folder: Path, master: str | None = None) -> int:
    from workloads.java import find_java
    from workloads.processes import tethered

    command = [sys.executable, "-m", "analysis", str(folder)]
    if master is not None:
        command += ["--master", master]
    environment = {**os.environ, "JAVA_HOME": str(find_java().home)}
    return subprocess.run(tethered(command), env=environment, check=False).returncode

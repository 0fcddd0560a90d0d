"""Analyse a small made-up run, and archive the classes that Spark read for it: `make setup` does.

Nothing is done, or said, with a Java that cannot.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.made_records import whole_run, write
from workloads.commands.analyze import start_analysis
from workloads.processes.java import can_archive, find_java


def main() -> int:
    if not can_archive(find_java()):
        return 0
    with TemporaryDirectory() as folder:
        write(Path(folder), whole_run(rows=50, tries=2))
        return start_analysis("analysis", folder, "--archive-classes")


if __name__ == "__main__":
    sys.exit(main())

"""`brokerlab run`"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workloads.errors import PlanError
from workloads.folders import RunFolder, choose

if TYPE_CHECKING:
    import argparse

    from workloads.plan import Plan
    from workloads.runner import Run, Summary

RESULTS: Final = Path("results")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", type=Path, default=Path("experiments.yaml"), help="default: experiments.yaml"
    )
    parser.add_argument("--profile", default="steady", help="which of the file's profiles (default: steady)")
    parser.add_argument("--only", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="only these trials")
    parser.add_argument("--messages", type=int, help="messages of each trial, in place of the profile's length")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the results folder (default: results/PROFILE-NUMBER)")
    parser.add_argument("--no-analysis", action="store_true", help="stop when the raw records are written")
    parser.epilog = (
        "examples:\n"
        "  brokerlab run --profile quick\n"
        "  brokerlab run --profile steady --only architecture=dsbs mode=split --out results/mine\n\n"
        "A run that was interrupted goes on where it stopped when the same command is given again.\n"
        "exit code 0: all trials are valid; 1: some failed or do not balance; 2: nothing was run, and you can mend it"
    )


def run(options: argparse.Namespace) -> int:
    from workloads.commands.analyze import analyze
    from workloads.estimate import check_disk, estimate
    from workloads.plan import resolve
    from workloads.progress import duration
    from workloads.spec import load

    plan = resolve(load(options.file), options.profile, options.only, options.messages)
    out = options.out or choose(RESULTS, plan)
    expected = estimate(plan)
    check_disk(expected, shutil.disk_usage(_existing(out)).free)
    print(
        f"{plan.profile}: {expected.trials} trials of {expected.cells} cells into {out}, "
        f"about {duration(expected.seconds)}"
    )
    with RunFolder(out) as folder:
        if options.out is None:
            folder.be_latest()
        summary = _run(plan, folder)
        code = _report(summary, folder.path)
        if not options.no_analysis and summary.valid + summary.invalid:
            code = max(code, analyze(folder.path))
    return code


def _run(plan: Plan, folder: RunFolder) -> Summary:
    from workloads.progress import progress_for
    from workloads.runner import Run

    return asyncio.run(_until_told(Run(plan, folder.results, progress_for())))


async def _until_told(run: Run) -> Summary:
    """Run; SIGTERM ends it in the same orderly way as Ctrl-C."""
    work = asyncio.create_task(run.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    try:
        return await work
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _report(summary: Summary, folder: Path) -> int:
    print(f"{summary.valid} valid, {summary.invalid} invalid, {summary.failed} failed trials in {folder}")
    return 0 if summary.invalid == summary.failed == 0 else 1


def _existing(path: Path) -> Path:
    """The nearest folder above that exists, whose disk the results will be on."""
    for folder in (path, *path.absolute().parents):
        if folder.is_dir():
            if not os.access(folder, os.W_OK):
                raise PlanError(f"{folder} cannot be written to; name another folder with --out")
            return folder
    raise PlanError(f"{path}: no such folder, nor any above it")

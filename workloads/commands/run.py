"""`brokerlab run`"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workloads.commands import arguments
from workloads.errors import PlanError, UserError
from workloads.run.folders import RunFolder, choose, newest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection

    from workloads.run.runner import Summary
    from workloads.spec.plan import Fleet, Plan

RESULTS: Final = Path("results")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_arguments(parser)
    parser.add_argument(
        "--tries",
        metavar="N",
        help="blocks, in place of the profile's; +N: so many more than the run has that is there",
    )
    parser.add_argument("--dry-run", action="store_true", help="say in which order what would run, and start nothing")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the results folder (default: results/PROFILE-NUMBER)")
    parser.add_argument("--no-analysis", action="store_true", help="stop when the raw records are written")
    parser.epilog = (
        "examples:\n"
        "  brokerlab run --profile quick\n"
        "  brokerlab run --profile steady --only architecture=dsbs mode=split --out results/mine\n"
        "  brokerlab run --profile steady --tries +2\n\n"
        "A run that was interrupted goes on where it stopped when the same command is given again.\n"
        "exit code 0: all trials are valid; 1: some failed or do not balance; 2: nothing was run, and you can mend it"
    )


def run(options: argparse.Namespace) -> int:
    from workloads.commands.analyze import analyze
    from workloads.processes.pinning import check
    from workloads.processes.signals import run_until_told
    from workloads.results import ResultsFolder
    from workloads.run.progress import duration
    from workloads.spec.estimate import check_disk, estimate
    from workloads.systems.architectures import bring_programs
    from workloads.topology.choice import refuse_unavailable

    plan, out = _asked_for(options)
    ResultsFolder(out).manifest_to_go_on_with()
    expected = estimate(plan)
    check_disk(expected, shutil.disk_usage(_existing(out)).free)
    check(plan.pin)
    print(
        f"{plan.profile}: {'at least ' if plan.effort.budget_s else ''}{expected.trials} trials of {expected.cells} "
        f"cells into {out}, about {duration(expected.seconds)}"
    )
    if options.dry_run:
        return _show_order(plan, out)
    run_until_told(refuse_unavailable([cell.cluster for cell in plan.cells], plan.hosts))
    bring_programs(plan.architectures)
    with RunFolder(out) as folder:
        if options.out is None:
            folder.be_latest()
        summary = _run(plan, folder)
        code = _report(summary, folder.path)
        if not options.no_analysis and summary.valid + summary.invalid:
            code = max(code, analyze(folder.path))
    return code


def _asked_for(options: argparse.Namespace) -> tuple[Plan, Path]:
    """The plan to run, and its folder. With `--tries +N` both depend on the existing run."""
    from workloads.results import ResultsFolder
    from workloads.spec.plan import resolve
    from workloads.spec.spec import load

    file, only = arguments.file_and_only(options)
    spec = load(file)
    asked = options.tries or ""
    tries = _whole(asked.removeprefix("+")) if asked else None
    plan = resolve(spec, options.profile, only, options.messages, tries)
    if tries is None or not asked.startswith("+"):
        return plan, options.out or choose(RESULTS, plan)
    out = options.out or newest(RESULTS, plan.name)
    manifest = ResultsFolder(out).read_manifest()
    if manifest is None:
        raise UserError(f"{out} holds no run to add tries to")
    before = manifest.get("tries", resolve(spec, options.profile).effort.tries)
    return resolve(spec, options.profile, only, options.messages, before + tries), out


def _whole(text: str) -> int:
    from workloads.spec.keys import PROFILE

    try:
        found: int = PROFILE["tries"].kind.parse(text)
    except ValueError as error:
        raise UserError(f"--tries cannot be {text!r}: {error}; +2 adds two") from error
    return found


def _show_order(plan: Plan, out: Path) -> int:
    from workloads.results import ResultsFolder

    done = {trial for trial, (verdict, _) in ResultsFolder(out).finished_trials().items() if verdict != "failed"}
    for block in plan.blocks:
        if not plan.is_sure(block):
            print("more blocks, if the ratios are not known well enough by then and the budget lasts")
            break
        print(f"block {block.number}")
        for fleet in block.fleets:
            _show_fleet(fleet, done)
    return 0


def _show_fleet(fleet: Fleet, done: Collection[str]) -> None:
    settings = ", ".join(f"{key}={text}" for key, text in fleet.cluster.as_axes().items())
    print(f"  clusters of {', '.join(each.name for each in fleet.architectures)} side by side ({settings})")
    for visit in fleet.visits:
        over = ", which is done" if all(trial.id in done for trial in visit.trials) else ""
        print(f"    {visit.cell.id}{over}")


def _run(plan: Plan, folder: RunFolder) -> Summary:
    from workloads.processes.signals import run_until_told
    from workloads.run.progress import progress_for
    from workloads.run.runner import Run

    return run_until_told(Run(plan, folder.results, progress_for()).run())


def _report(summary: Summary, folder: Path) -> int:
    print(f"{summary.valid} valid, {summary.invalid} invalid, {summary.failed} failed trials in {folder}")
    if summary.spent:
        print(f"the run's time, without the analysis: {summary.spent}")
    return 0 if summary.invalid == summary.failed == 0 else 1


def _existing(path: Path) -> Path:
    """The nearest folder above that exists, whose disk the results will be on."""
    for folder in (path, *path.absolute().parents):
        if folder.is_dir():
            # Where there is no disk at all, as below /proc, there is nothing to write to, whatever the permissions.
            if not os.access(folder, os.W_OK) or shutil.disk_usage(folder).total == 0:
                raise PlanError(f"{folder} cannot be written to; name another folder with --out")
            return folder
    raise PlanError(f"{path}: no such folder, nor any above it")

"""`brokerlab plan`: what would run, in which order, how long, on how much disk. Nothing is started or written."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workloads.commands import arguments

if TYPE_CHECKING:
    from workloads.spec.estimate import Estimate
    from workloads.spec.plan import Block, Plan

CELLS_SHOWN_MAX = 100  # --json has all
BLOCKS_SHOWN_MAX = 10

EXAMPLE = "example: brokerlab plan --profile paper --only architecture=dsbs mode=split"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    arguments.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the same as data")


def run(args: argparse.Namespace) -> int:
    """Print the plan; raises SpecError for the file, PlanError for the rest, a disk that is too full included."""
    from workloads.spec.estimate import check_disk, estimate
    from workloads.spec.plan import resolve
    from workloads.spec.spec import load

    file, only = arguments.file_and_only(args)
    plan = resolve(load(file), args.profile, only, args.messages)
    expected = estimate(plan)
    free_bytes = shutil.disk_usage(".").free
    if args.json:
        print(json.dumps(as_json(plan, expected, free_bytes), indent=2))
    else:
        show(plan, expected, free_bytes)
    check_disk(expected, free_bytes)
    return 0


def as_json(plan: Plan, expected: Estimate, free_bytes: int) -> dict[str, Any]:
    order = [
        {
            "block": block.number,
            "cluster": fleet.cluster.as_axes(),
            "architectures": [each.name for each in fleet.architectures],
            "cells": [visit.cell.id for visit in fleet.visits],
        }
        for block in plan.blocks
        if plan.is_sure(block)
        for fleet in block.fleets
    ]
    return {**plan.as_json(), "order": order, "estimate": asdict(expected), "free_bytes": free_bytes}


def show(plan: Plan, expected: Estimate, free_bytes: int) -> None:
    blocks = [block for block in plan.blocks if plan.is_sure(block)]
    print(
        f"profile {plan.profile} ({plan.spec_hash}): {_counted(expected.cells, 'cell')} x "
        f"{_counted(len(plan.architectures), 'architecture')} x {_counted(len(blocks), 'block')} = "
        f"{_counted(expected.trials, 'trial')}, {_length(plan)}\n"
    )
    _show_table(_table(plan))
    if len(plan.cells) > CELLS_SHOWN_MAX:
        print(f"and {len(plan.cells) - CELLS_SHOWN_MAX} more cells (--json shows all)")
    print(f"\norder (a block is a try, on fresh clusters; its cells are drawn from seed {plan.seed}):")
    for block in blocks[:BLOCKS_SHOWN_MAX]:
        print(f"  block {block.number}: {_order(block)}")
    if len(blocks) > BLOCKS_SHOWN_MAX:
        print(f"  and {len(blocks) - BLOCKS_SHOWN_MAX} more blocks (--json shows all)")
    if plan.effort.budget_s is not None:
        print(
            f"  then more rounds, and blocks, for what is not known to {plan.effort.precision:.3g} of its ratio, up to "
            f"{_duration(plan.effort.budget_s)} in all"
        )
    print(f"\nexpected: about {_duration(expected.seconds)}, {_rounded(expected.messages)} messages and more")
    print(
        f"disk at the peak: {_bytes(expected.bytes_on_disk_peak)}, of which raw records that stay "
        f"{_bytes(expected.bytes_results)}; free: {_bytes(free_bytes)}"
    )
    if expected.longest_trial_s > plan.timeout_s:
        print(
            f"note: the longest trial is expected to take {_duration(expected.longest_trial_s)}, beyond timeout_s "
            f"{plan.timeout_s:g}; it would then fail"
        )


def _length(plan: Plan) -> str:
    rounds = _counted(plan.effort.rounds, "round")
    if plan.length.messages is not None:
        return f"{rounds} of {plan.length.messages:,} messages each"
    return f"{rounds} of windows of {plan.length.duration_s:g} s each"


def _table(plan: Plan) -> list[list[str]]:
    """A row a cell; under each architecture the messages that a trial is expected to send, and in which time."""
    from workloads.spec.estimate import estimate_trial

    expected = {
        (trial.cell.id, trial.architecture.name): estimate_trial(trial, plan.effort) for trial in plan.blocks[0].trials
    }
    rows = [["cell", "experiments", *(each.name for each in plan.architectures)]]
    for cell in plan.cells[:CELLS_SHOWN_MAX]:
        trials = [expected[cell.id, each.name] for each in plan.architectures]
        texts = [f"~{_rounded(trial.messages)} in {_duration(trial.window_s)}" for trial in trials]
        rows.append([cell.id, ", ".join(cell.experiments), *texts])
    return rows


def _show_table(rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*rows[0])
        for row in rows[1:]:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(len(text) for text in column) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _order(block: Block) -> str:
    """The cells of each fleet, all of whose architectures are up side by side."""
    return "; ".join(f"{_counted(len(fleet.visits), 'cell')} from {fleet.visits[0].cell.id}" for fleet in block.fleets)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _rounded(count: int) -> str:
    """Two digits: an estimate knows no more."""
    return f"{int(float(f'{count:.2g}')):,}"


def _duration(seconds: float) -> str:
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.0f} TB"

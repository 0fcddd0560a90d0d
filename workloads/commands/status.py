"""`brokerlab status`"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, default=Path("results/latest"), help="default: results/latest")
    parser.add_argument("--json", action="store_true", help="the same as data")
    parser.epilog = "example: brokerlab status results/steady-1"


def run(options: argparse.Namespace) -> int:
    found = status(options.folder)
    print(json.dumps(found, indent=2) if options.json else "\n".join(_lines(found)))
    return 0


def status(folder: Path) -> dict[str, Any]:
    """The content of a run's folder. Raises `UserError` for any other folder."""
    from workloads.errors import UserError
    from workloads.results import ResultsFolder

    results = ResultsFolder(folder)
    manifest = results.read_manifest()
    if manifest is None:
        raise UserError(f"{folder} is no results folder: it has no manifest.json")
    trials = results.finished_trials()
    return {
        "folder": str(folder.resolve()),
        "profile": manifest["profile"],
        "started": manifest["started"],
        "ended": manifest["ended"],
        "planned": len(manifest["planned"]),
        "trials": dict(sorted(Counter(verdict for verdict, _ in trials.values()).items())),
        "left": sorted(set(manifest["planned"]) - trials.keys()),
        "reasons": {trial: reason for trial, (_, reason) in sorted(trials.items()) if reason},
    }


def _lines(found: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in found["trials"].items()) or "none finished"
    ended = f"ended {found['ended']}" if found["ended"] else "not ended: the same run command goes on with it"
    lines = [
        f"{found['folder']} ({found['profile']})",
        f"started {found['started']}, {ended}",
        f"{found['planned']} trials planned: {counts}, {len(found['left'])} left",
    ]
    return lines + [f"  {trial}: {reason}" for trial, reason in found["reasons"].items()]

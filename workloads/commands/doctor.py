"""`brokerlab doctor`"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from workloads.doctor import Finding


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="the same as data")
    parser.epilog = "example: brokerlab doctor\nexit code 0: everything is there; 2: something is missing"


def run(options: argparse.Namespace) -> int:
    from workloads.doctor import examine

    findings = examine(Path.cwd())
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        print("\n".join(_lines(findings)))
    return 0 if all(finding.ok for finding in findings) else 2


def _lines(findings: list[Finding]) -> list[str]:
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{'ok     ' if finding.ok else 'MISSING'}  {finding.name:{width}}  {finding.found}")
        if not finding.ok:
            lines.append(f"         {'':{width}}  mend it: {finding.mend}")
    missing = sum(not finding.ok for finding in findings)
    lines.append("everything is there" if missing == 0 else f"{missing} missing")
    return lines

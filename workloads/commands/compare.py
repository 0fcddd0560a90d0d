"""`brokerlab compare`: two runs, or a run and the 2017 paper, with the statistics of the report."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="two results folders, or one with --paper")
    parser.add_argument("--paper", action="store_true", help="compare one run with the paper's published tries")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where the tables go (default: beside the last DIR)")
    parser.add_argument("--master", metavar="URL", help="a Spark cluster (default: all cores of this machine)")
    parser.epilog = (
        "examples:\n"
        "  brokerlab compare results/steady-1 results/steady-2\n"
        "  brokerlab compare --paper results/latest\n\n"
        "Prints both tables, and warns on stderr where machines, versions or specs differ."
    )


def run(options: argparse.Namespace) -> int:
    from workloads.commands.analyze import start_analysis
    from workloads.errors import UserError

    if len(options.folders) != (1 if options.paper else 2):
        raise UserError("name two results folders, or one and --paper")
    arguments = [*map(str, options.folders), *(["--paper"] if options.paper else [])]
    return start_analysis("analysis.compare", *arguments, out=options.out, master=options.master)

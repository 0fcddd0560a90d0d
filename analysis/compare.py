"""`python -m analysis.compare A B`, or `--paper A`: two runs, or a run and the 2017 paper, cell by cell.

It prints the comparison and writes it as CSV and Markdown. Warnings about machines, versions and specs go to stderr and
into the Markdown: these alone may explain a difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from analysis import console
from analysis.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from analysis.findings import Found
    from analysis.two_runs import Compared

_PAPER_DIFFERS = (
    "the paper's machines, versions and data plane are not known, and differ from these",
    "the paper's tries are no blocks: they are paired in the order in which they are printed",
)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return console.ended(partial(_compare, options), options.debug)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m analysis.compare", description="Compare two runs, cell by cell.")
    parser.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="results folders")
    parser.add_argument("--paper", action="store_true", help="compare one run with the 2017 paper's published tries")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where the tables go")
    console.add_arguments(parser)
    return parser


def _compare(options: argparse.Namespace) -> None:
    from analysis.load import check

    folders: list[Path] = options.folders
    if len(folders) != (1 if options.paper else 2):
        raise InputError("name two results folders, or one and --paper")
    input_bytes = sum(check(folder) for folder in folders)
    from analysis import publish
    from analysis.session import spark_session

    for folder in folders:
        publish.manifest(folder)  # a bad one is refused before Spark starts
    called = names(folders, options.paper)
    out: Path = options.out or folders[-1].resolve().parent / f"compare-{called[0]}-{called[1]}"
    log = publish.made(out) / publish.LOG
    with (
        tempfile.TemporaryDirectory(prefix="brokerlab-compare-") as work,
        spark_session(
            Path(work), log, master=options.master, input_bytes=input_bytes, memory_mb=options.memory_mb
        ) as spark,
    ):
        compared = found(spark, folders, called, options.paper)
    text = publish.publish_comparison(out, compared)
    for warning in compared.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    console.tell(f"{text}\nwritten to {out}: rates and ratios, as .csv and .md")


def names(folders: Sequence[Path], paper: bool) -> tuple[str, str]:
    """The names of the runs: those of their folders, with (A) and (B) where these are the same."""
    if paper:
        from analysis.two_runs import PAPER

        return PAPER, folders[0].resolve().name
    first, second = (folder.resolve().name for folder in folders)
    return (first, second) if first != second else (f"{first} (A)", f"{second} (B)")


def found(spark: SparkSession, folders: Sequence[Path], called: tuple[str, str], paper: bool) -> Compared:
    """Compare the runs in the folders. Raises InputError where they have no cell in common."""
    from analysis import pipeline, publish, two_runs
    from analysis.statistics import between

    with pipeline.spark_errors():
        first, second = _windows(spark, folders, paper)
    rates = between.rates_between(first, second)
    if not rates:
        raise InputError(f"{called[0]} and {called[1]} have no cell and architecture in common")
    manifests = [publish.manifest(folder) for folder in folders]
    warnings = _PAPER_DIFFERS if paper else two_runs.warnings(called, (manifests[0], manifests[1]))
    return two_runs.compared(called, warnings, rates, between.ratios_between(first, second))


def _windows(spark: SparkSession, folders: Sequence[Path], paper: bool) -> tuple[Sequence[Found], Sequence[Found]]:
    """The windows of both: published tries stand for those of a run."""
    from analysis import pipeline
    from analysis.measures import paper as published

    second = pipeline.every_window(spark, folders[-1])
    if paper:
        tries = published.tries(published.published())
        return tries, published.beside(second, tries)
    return pipeline.every_window(spark, folders[0]), second


if __name__ == "__main__":
    sys.exit(main())

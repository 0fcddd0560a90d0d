"""`python -m analysis DIR`: raw records in; tables, figures and the report out.

It prints the answer in words and the report's path. With `--progress`, a line `step 3/10: reading the records` comes
before each step. Exit code 2 and one line on stderr: the user can mend it. Exit code 1: a failure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from analysis import console

_DESCRIPTION = "Compute tables, figures and report.html of a run from its raw records, with Spark."
_EXAMPLE = "example: python -m analysis results/latest"
STEPS = 10  # checking, Spark, the pipeline's own, figures, report


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    return console.ended(partial(_analyse, options), options.debug)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m analysis", description=_DESCRIPTION, epilog=_EXAMPLE)
    parser.add_argument("place", metavar="DIR", help="a results folder, or an address that Spark reads (hdfs://...)")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where tables, figures and report go (as a rule, DIR)")
    parser.add_argument("--progress", action="store_true", help="say each step")
    parser.add_argument("--archive-classes", action="store_true", help="make later starts of Spark quick (make setup)")
    console.add_arguments(parser)
    return parser


def _analyse(options: argparse.Namespace) -> None:
    """The imports are here so that `--help` and a wrong folder answer at once."""
    from analysis.load import check, check_elsewhere, place_of

    say = _speaker() if options.progress else _silent
    say("checking the files")
    place = place_of(options.place)
    # The size of records at an address is not known here; they count as large.
    input_bytes = check(place) if isinstance(place, Path) else sys.maxsize
    from analysis import pipeline, publish
    from analysis.report.summary import as_text
    from analysis.session import spark_session

    about = publish.manifest(place) if isinstance(place, Path) else None
    out = publish.out_folder(place, options.out)
    with publish.work_folder(out) as work:
        say("starting Spark")
        with spark_session(
            work,
            out / publish.LOG,
            master=options.master,
            input_bytes=input_bytes,
            memory_mb=options.memory_mb,
            archives=options.archive_classes,
        ) as spark:
            if isinstance(place, str):
                with pipeline.spark_errors():
                    check_elsewhere(spark, place)
                about = publish.manifest(place, spark)
            found = pipeline.findings(spark, place, say, about)
        say("figures")
        figures = publish.draw(found)
        say("report")
        answer = publish.publish(out, work, found, figures, about)
    console.tell(f"{as_text(answer)}\nreport: {out / publish.REPORT}")


def _silent(_step: str) -> None:
    return


def _speaker() -> Callable[[str], None]:
    steps = 0

    def say(step: str) -> None:
        nonlocal steps
        steps += 1
        print(f"step {steps}/{STEPS}: {step}", flush=True)

    return say


if __name__ == "__main__":
    sys.exit(main())

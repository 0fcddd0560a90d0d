"""`python -m analysis DIR`: raw records in; tables, figures and the report out.

Prints the answer in words and the report's path. With `--progress`, a line `step 3/9: latency` comes before each step.
Exit code 2 and one line on stderr for what the user can mend, 1 for a failure.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from analysis.errors import AnalysisError

_INTERRUPTED = 130
_DESCRIPTION = "Compute tables, figures and report.html of a run from its raw records, with Spark."
_EXAMPLE = "example: python -m analysis results/latest"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    # Libraries log what they raise anyway, with its stack, and that a font cache is built; this command says one line.
    logging.disable()
    try:
        return _analyse(options.folder, options.master, options.memory_mb, options.progress)
    except AnalysisError as error:
        if options.debug:
            raise
        print(f"analysis: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("analysis: interrupted; what was there before is unchanged", file=sys.stderr)
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m analysis", description=_DESCRIPTION, epilog=_EXAMPLE)
    parser.add_argument("folder", metavar="DIR", type=Path, help="a results folder")
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark master (%(default)s)")
    parser.add_argument("--memory-mb", metavar="N", type=int, default=1024, help="Spark's heap (%(default)s)")
    parser.add_argument("--progress", action="store_true", help="say each step")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _terminated(number: int, _frame: FrameType | None) -> None:
    """SIGTERM unwinds like any exit, so that Spark and the work folder go too."""
    raise SystemExit(128 + number)


def _analyse(folder: Path, master: str, memory_mb: int, progress: bool) -> int:
    """The imports are here so that `--help` and a wrong folder answer at once."""
    from analysis.load import check

    say = _speaker() if progress else _silent
    say("checking the files")
    input_bytes = check(folder)
    from analysis import pipeline, publish
    from analysis.session import spark_session
    from analysis.summary import as_text

    about = publish.manifest(folder)
    with publish.work_folder(folder) as work:
        say("starting Spark")
        with spark_session(work, master=master, input_bytes=input_bytes, memory_mb=memory_mb) as spark:
            found = pipeline.findings(spark, folder, say)
        say("figures")
        figures = publish.draw(found)
        say("report")
        answer = publish.publish(folder, work, found, figures, about)
    _tell(f"{as_text(answer)}\nreport: {folder / publish.REPORT}")
    return 0


def _tell(text: str) -> None:
    """A reader that has seen enough (`| head`) is no failure: everything is written by now."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _silent(_step: str) -> None:
    return


def _speaker() -> Callable[[str], None]:
    steps = 0

    def say(step: str) -> None:
        nonlocal steps
        steps += 1
        print(f"step {steps}/{STEPS}: {step}", flush=True)

    return say


# checking, Spark, the pipeline's own, figures, report
STEPS = 10


if __name__ == "__main__":
    sys.exit(main())

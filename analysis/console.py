"""The analysis's commands as processes: their common arguments, exit codes and last words."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from analysis.errors import AnalysisError

_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every command."""
    parser.add_argument("--master", metavar="URL", default="local[*]", help="Spark master (%(default)s)")
    parser.add_argument("--memory-mb", metavar="N", type=int, default=1024, help="Spark's heap (%(default)s)")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")


def ended(work: Callable[[], None], debug: bool) -> int:
    """Do the work and return the exit code: 2 where the user can mend it, 1 for a failure, each with one line."""
    signal.signal(signal.SIGTERM, _terminated)
    # Libraries log errors with their stacks, and the building of a font cache; a command says one line.
    logging.disable()
    try:
        work()
    except AnalysisError as error:
        if debug:
            raise
        print(f"brokerlab: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("brokerlab: interrupted; what was there before is unchanged", file=sys.stderr)
        return _INTERRUPTED
    return 0


def _terminated(number: int, _frame: FrameType | None) -> None:
    """SIGTERM unwinds like any exit, so that Spark and the work folder go too."""
    raise SystemExit(128 + number)


def tell(text: str) -> None:
    """Print the result. A reader that has seen enough (`| head`) is no failure: everything is written by now."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

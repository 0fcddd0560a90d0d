"""The errors of an analysis. It never changes raw records, so every error here is definite."""

from __future__ import annotations

import re
from itertools import pairwise

# Where the next entry begins in a log of Spark's; those of its own end with an empty line.
_NEXT_ENTRY = re.compile(r"\n\s*\n|\n(?=(?:WARN|ERROR|FATAL|Exception in thread) )")
_WARNING_OF_JAVA = re.compile(r"^WARNING: .*\n?", re.MULTILINE)
_FRAME = re.compile(r"\s+(at|\.\.\.) ")  # a line of a stack that names no exception
_LEAD = re.compile(r'(Caused by: |Exception in thread "[^"]*" |: |)')


class AnalysisError(Exception):
    """Root of this package's errors: the analysis did not happen, and the former results are unchanged."""

    exit_code = 1


class InputError(AnalysisError):
    """The user can mend it: a wrong folder, damaged or mixed records, no Java. The message says what and where."""

    exit_code = 2


class EngineError(AnalysisError):
    """Spark did not start or failed in a way that the records do not explain."""


def cause(said: str) -> str:
    """The bottom of the first stack in a log of Spark's or an error of py4j's, for an error's one line.

    It passes over warnings and their stacks. Without a stack it is the first line.
    """
    entries = _NEXT_ENTRY.split(_WARNING_OF_JAVA.sub("", said))
    lines = next((entry.strip().splitlines() for entry in entries if entry.strip() and entry[:5] != "WARN "), None)
    if lines is None:
        return "it said nothing"
    raised = [line for line, after in pairwise(lines) if _FRAME.match(after) and not _FRAME.match(line)]
    return _LEAD.sub("", raised[-1] if raised else lines[0], count=1).strip()

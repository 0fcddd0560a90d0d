"""The errors that reach the user: one line each, and the exit code that goes with it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

NAMES_SHOWN_MAX = 20


class BrokerlabError(Exception):
    """Root of this package's errors. Indefinite: part of the work may have been done; what is on disk says which."""

    exit_code = 1


class UserError(BrokerlabError):
    """A mistake that the user can mend. Definite: it is raised before anything was started or written."""

    exit_code = 2


class SpecError(UserError):
    """The experiments file says something that cannot be run; names the place, the value and what is allowed.

    `line` and `column` count from 1, and are None where the file as a whole is at fault (missing, too large).
    """

    def __init__(self, file: str, line: int | None, column: int | None, message: str) -> None:
        place = file if line is None else f"{file}:{line}:{column}"
        super().__init__(f"{place}: {message}")
        self.file = file
        self.line = line
        self.column = column
        self.message = message


class PlanError(UserError):
    """The file is good, but not what was asked of it: an unknown profile, a filter that fits nothing, a full disk."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one, or the known ones where none is near."""
    names = list(known)
    if near := difflib.get_close_matches(word, names, n=1):
        return f"did you mean {near[0]!r}?"
    more = ", ..." if len(names) > NAMES_SHOWN_MAX else ""
    return f"allowed: {', '.join(names[:NAMES_SHOWN_MAX])}{more}"

"""The mutants that are listed beside this file, a file for each part of the program on which promises rest.

A mutant is one change by which the program breaks a promise: `find`, a text that stands in `file` exactly once, gives
way to `put`, and one of `tests` has to fail then. `breaks` says which promise it is.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

LISTS = Path(__file__).parent


class MistakeInList(Exception):
    """A mutant that cannot be made, or whose tests say nothing; to be put right in the list."""


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    file: str
    find: str
    put: str
    tests: tuple[str, ...]
    breaks: str

    def of(self, content: str) -> str:
        """The file's content with the mutant in it. Raises `MistakeInList`: the program has moved on."""
        times = content.count(self.find)
        if times != 1:
            raise MistakeInList(f"{self.name}: {self.file} holds {self.find.strip()!r} {times} times, and not once")
        return content.replace(self.find, self.put)


def listed() -> tuple[Mutant, ...]:
    """All of them, part by part."""
    return tuple(
        Mutant(**{**row, "tests": tuple(row["tests"])})
        for path in sorted(LISTS.glob("*.toml"))
        for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    )

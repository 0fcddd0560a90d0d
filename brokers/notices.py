"""Events of the disk in logs and journals: told on standard error, one line each, and counted for `Statistics`."""

from __future__ import annotations

import logging
from threading import Lock
from typing import Final

_LOG: Final = logging.getLogger(__name__)
_REMEMBERED_MAX: Final = 10_000


class Notices:
    """One for a process, and for all its threads. `counts` is by kind, and what is counted stands in its name: bytes,
    offsets, files, errors."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._told: set[str] = set()
        self._changing = Lock()

    def tell(self, line: str, **counts: int) -> None:
        """Say the line, and add what it is about."""
        self.count(**counts)
        _LOG.warning("broker: %s", line)

    def tell_once(self, line: str, **counts: int) -> None:
        """As `tell`; a line that was told before is only counted."""
        with self._changing:
            told = line in self._told or len(self._told) >= _REMEMBERED_MAX
            if not told:
                self._told.add(line)
        if told:
            self.count(**counts)
        else:
            self.tell(line, **counts)

    def count(self, **counts: int) -> None:
        with self._changing:
            for kind, number in counts.items():
                self.counts[kind] = self.counts.get(kind, 0) + number

"""A disk that keeps chosen calls waiting, for tests of what goes on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from brokers.log.files import OsFiles

WAITS_S_MAX = 60.0


class SlowFiles(OsFiles):
    """The real disk, but calls of which `holds(name, argument)` is true wait until `let_go`."""

    def __init__(self, holds: Callable[[str, object], bool]) -> None:
        self._holds = holds
        self.reached = threading.Semaphore(0)  # once for each call that waits
        self.waiting = 0
        self._open = threading.Event()

    def let_go(self) -> None:
        self._open.set()

    def _pass(self, call: str, argument: object) -> None:
        if self._holds(call, argument) and not self._open.is_set():
            self.waiting += 1
            self.reached.release()
            assert self._open.wait(WAITS_S_MAX)

    def make_directory(self, path: Path) -> None:  # type: ignore[override]
        self._pass("make_directory", path)
        OsFiles.make_directory(path)

    def fdatasync(self, handle: int) -> None:  # type: ignore[override]
        self._pass("fdatasync", handle)
        OsFiles.fdatasync(handle)

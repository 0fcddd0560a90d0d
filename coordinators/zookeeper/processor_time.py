"""What threads cost: the processor time of those that a library starts for itself."""

from __future__ import annotations

import time
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ProcessorTime:
    """Of threads that come and go: of those that run, by their own clocks, and of those that have ended."""

    def __init__(self) -> None:
        # The clock of a thread that has ended must not be read: each takes its own away under the lock.
        self._lock = Lock()
        self._clocks: dict[int, int] = {}
        self._ended_ns = 0

    def counted(self, work: Callable[..., object]) -> Callable[..., None]:
        def run(*args: Any, **kwargs: Any) -> None:
            me = get_ident()
            with self._lock:
                self._clocks[me] = time.pthread_getcpuclockid(me)
            try:
                work(*args, **kwargs)
            finally:
                with self._lock:
                    del self._clocks[me]
                    self._ended_ns += time.thread_time_ns()

        return run

    def used_ns(self) -> int:
        with self._lock:
            return self._ended_ns + sum(map(time.clock_gettime_ns, self._clocks.values()))

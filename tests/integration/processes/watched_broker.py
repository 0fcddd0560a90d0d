"""`python -m tests.integration.processes.watched_broker CONFIG`: a broker that tells when its event loop stands still.

While one turn of the loop lasts, nobody is served, and no heartbeat leaves. A timer tells how late it is; from that
goes what the thread spent waiting for a processor, which a busy machine makes long and a broker does not. What is left
is the turn's own: computing, or waiting for a disk, a lock or a sleep. Where that is beyond the bound, a line and
the stack at that moment go to standard error, and whoever started the broker fails his test with them. A process that
was stopped meanwhile (SIGSTOP) is not at fault.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from brokers import __main__ as program
from brokers.broker import BrokerProcess

MARK: Final = "watchdog:"
# A processor that others use runs half as fast, garbage is collected, and many requests of 15 MB may be due in one
# turn on a disk that others write to as well: a sound broker keeps this everywhere.
TURN_S_MAX: Final = 2.0
_INTERVAL_S: Final = 0.05
_SCHEDSTAT: Final = Path("/proc/thread-self/schedstat")


class Watchdog:
    """Of the loop that it is made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stack = tempfile.TemporaryFile()  # noqa: SIM115 # as long as the process
        self._continued_s = 0.0
        self._loop.add_signal_handler(signal.SIGCONT, self._continued)
        self._begin()

    def _begin(self) -> None:
        self._due_s = time.monotonic() + _INTERVAL_S
        self._waited_s = _waited_s()
        faulthandler.dump_traceback_later(TURN_S_MAX, file=self._stack, exit=False)
        self._loop.call_later(_INTERVAL_S, self._look)

    def _look(self) -> None:
        faulthandler.cancel_dump_traceback_later()
        own_s = time.monotonic() - self._due_s - (_waited_s() - self._waited_s)
        if own_s > TURN_S_MAX:
            # A signal that came with the end of the turn is heard by then.
            self._loop.call_later(_INTERVAL_S, self._judge, own_s, self._due_s - _INTERVAL_S, self._seen())
        self._begin()

    def _seen(self) -> str:
        """The stacks of the threads when the bound was passed."""
        size = self._stack.seek(0, os.SEEK_END)
        self._stack.seek(0)
        seen = self._stack.read(size).decode(errors="replace")
        self._stack.seek(0)
        self._stack.truncate()
        return seen

    def _judge(self, own_s: float, since_s: float, seen: str) -> None:
        if self._continued_s < since_s:
            print(f"{MARK} a turn of the event loop took {own_s:.2f} s\n{seen}", file=sys.stderr, flush=True)

    def _continued(self) -> None:
        self._continued_s = time.monotonic()


def _waited_s() -> float:
    """How long this thread has waited for a processor; 0 where the kernel does not say."""
    try:
        return int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


class WatchedBroker(BrokerProcess):
    """Watched from when it serves. Two signals make it stand still, so that a test can see that it would be seen."""

    async def start(self) -> None:
        await super().start()
        Watchdog()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, _sleep, 2 * TURN_S_MAX)
        loop.add_signal_handler(signal.SIGUSR2, _compute, 2 * TURN_S_MAX)


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _compute(cpu_s: float) -> None:
    end_s = time.thread_time() + cpu_s
    while time.thread_time() < end_s:
        pass


if __name__ == "__main__":
    program.BrokerProcess = WatchedBroker  # type: ignore[attr-defined]
    sys.exit(program.main())

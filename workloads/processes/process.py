"""Child processes that cannot outlive their owner, whose words go to a log, and whose end is noticed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workloads.errors import BrokerlabError
from workloads.processes.liveness import Liveness, liveness_of, started_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TETHER: Final = Path(__file__).with_name("tether.py")
STOP_GRACE_S: Final = 5.0
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
LOG_TAIL_LINES: Final = 8
# For every child: numpy's library starts a thread for each further core, which spins for a while, and has no work here.
ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1"}


class ProcessFailed(BrokerlabError):
    """A child did not start, or ended when it should not have; the message has its last log lines."""

    def __init__(self, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class PortTaken(ProcessFailed):
    """A child ended because somebody else has its port; it may be started again with another."""


def tethered(command: Sequence[str]) -> list[str]:
    """`command`, so started that it dies with this process."""
    return [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command]


class Process:
    """One child: started, watched, stopped. Its stderr goes to `log`; so does stdout, unless it is spoken with."""

    def __init__(self, name: str, child: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.pid = child.pid
        self.started = started_at(child.pid)
        self.log = log
        self._child = child

    @classmethod
    async def start(
        cls,
        name: str,
        command: Sequence[str],
        log: Path,
        *,
        spoken_with: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> Process:
        """Start `command` in a session of its own, so that Ctrl-C reaches the owner alone, who stops it in order."""
        log.parent.mkdir(parents=True, exist_ok=True)
        pipe = asyncio.subprocess.PIPE
        with log.open("ab") as sink:
            child = await asyncio.create_subprocess_exec(
                *tethered(command),
                stdin=pipe if spoken_with else asyncio.subprocess.DEVNULL,
                stdout=pipe if spoken_with else sink,
                stderr=sink,
                start_new_session=True,
                limit=LINE_BYTES_MAX,
                env={**os.environ, **ENVIRONMENT, **(environment or {})},
            )
        return cls(name, child, log)

    @property
    def running(self) -> bool:
        return self._child.returncode is None

    async def read_line(self) -> bytes:
        """The child's next line. Raises `ProcessFailed` where it ends instead."""
        assert self._child.stdout is not None, "only a child that is spoken with answers"
        line = await self._child.stdout.readline()
        if not line:
            await self._child.wait()
            raise self.failure()
        return line

    async def write_line(self, line: bytes) -> None:
        assert self._child.stdin is not None, "only a child that is spoken with listens"
        try:
            self._child.stdin.write(line + b"\n")
            await self._child.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            await self._child.wait()
            raise self.failure() from None

    async def ended(self) -> None:
        """Return when the child has ended, for whatever reason."""
        await self._child.wait()

    def failure(self) -> ProcessFailed:
        """The message about a child that ended unasked."""
        return ProcessFailed(f"{self.name} {self.end}{_quoted_tail(self.log)}", code=self._child.returncode)

    @property
    def end(self) -> str:
        """How the child ended, as the end of a sentence about it."""
        code = self._child.returncode
        if code is None:
            return "is running"
        return f"was ended by {_signal_name(-code)}" if code < 0 else f"ended with {code}"

    @property
    def liveness(self) -> Liveness:
        return liveness_of(self.pid, self.started) if self.running else Liveness.GONE

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """SIGTERM, then SIGKILL after `grace_s`. Returns when the child is gone."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._child.wait(), grace_s)
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._child.wait()

    def kill(self) -> None:
        """SIGKILL, at once and without waiting."""
        self._signal(signal.SIGKILL)

    def pause(self) -> None:
        """SIGSTOP: it stands still at once or soon, until it is resumed or killed."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT; one that is not paused does not notice."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self.liveness is not Liveness.GONE:
            try:
                self._child.send_signal(number)
            except ProcessLookupError:  # it ended a moment ago
                return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _quoted_tail(log: Path) -> str:
    """The log's last lines, to stand behind a message."""
    try:
        with log.open("rb") as source:
            lines = deque(source, LOG_TAIL_LINES)
    except OSError:
        return ""
    text = "".join(f"\n  | {line.decode(errors='replace').rstrip()}" for line in lines)
    return f"; the end of {log.name}:{text}" if text else "; its log is empty"

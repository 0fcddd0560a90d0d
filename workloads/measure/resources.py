"""The costs of a process, read from /proc: CPU time, highest resident memory, bytes written to disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_user_s: float
    cpu_system_s: float
    rss_max_bytes: int
    written_bytes: int

    def since(self, earlier: Usage) -> Usage:
        """The use between two readings. Memory is the highest since `reset_peak`."""
        return Usage(
            self.cpu_user_s - earlier.cpu_user_s,
            self.cpu_system_s - earlier.cpu_system_s,
            self.rss_max_bytes,
            self.written_bytes - earlier.written_bytes,
        )


def usage_of(pid: int) -> Usage:
    """A process's counters since its start. Raises `ProcessLookupError` where it is gone."""
    folder = _PROC / str(pid)
    try:
        # The command's name stands in brackets and may hold blanks; fields count from behind it (state is the 3rd).
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        status = (folder / "status").read_text()
        io = (folder / "io").read_text()
    except (FileNotFoundError, ProcessLookupError):
        raise ProcessLookupError(f"process {pid} is gone") from None
    return Usage(
        cpu_user_s=int(fields[11]) / _TICKS_PER_S,
        cpu_system_s=int(fields[12]) / _TICKS_PER_S,
        rss_max_bytes=1024 * _number_behind("VmHWM:", status),
        written_bytes=_number_behind("\nwrite_bytes:", io),
    )


def reset_peak(pid: int) -> None:
    """Let the highest resident memory count from now."""
    try:
        (_PROC / str(pid) / "clear_refs").write_text("5")
    except (FileNotFoundError, ProcessLookupError):
        raise ProcessLookupError(f"process {pid} is gone") from None


def _number_behind(name: str, text: str) -> int:
    """The number that follows `name`; 0 where it is not there (a process that has just ended has no memory)."""
    _, found, rest = text.partition(name)
    return int(rest.split(maxsplit=1)[0]) if found else 0

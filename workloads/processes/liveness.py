"""Whether a process is there, and whether it stands still: by its id and the moment of its start, so that another one
that has the id by now is not taken for it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
# Where fields stand behind the command's name, which is in brackets and may hold blanks.
_STATE: Final = 0
_STARTED: Final = 19
_STOPPED: Final = frozenset("Tt")
_ENDED: Final = frozenset("ZXx")


class Liveness(Enum):
    RUNNING = "running"
    PAUSED = "paused"  # by SIGSTOP
    GONE = "gone"


def started_at(pid: int) -> int | None:
    """When a process started, in the kernel's ticks since its own start; None where it is gone."""
    try:
        return int(_fields(_PROC / str(pid))[_STARTED])
    except (FileNotFoundError, ProcessLookupError):
        return None


def liveness_of(pid: int, started: int | None) -> Liveness:
    """The state of the process that had this id and this start. It is paused when each of its threads is."""
    folder = _PROC / str(pid)
    try:
        fields = _fields(folder)
        if int(fields[_STARTED]) != started or fields[_STATE] in _ENDED:
            return Liveness.GONE
        states = {_fields(thread)[_STATE] for thread in (folder / "task").iterdir()}
    except (FileNotFoundError, ProcessLookupError):
        return Liveness.GONE
    return Liveness.PAUSED if states <= _STOPPED else Liveness.RUNNING


def _fields(folder: Path) -> list[str]:
    return (folder / "stat").read_text().rpartition(")")[2].split()

"""The machine's busy time in a window, and how much of it was not the run's: a neighbour that takes processor time is
seen without any trial that looks for it.

Busy is all that is not idle. The kernel's own work for packets (softirq) cannot be told apart by who caused it, so it
is left out on both sides.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

_PROC: Final = Path("/proc")
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
# A window with more foreign load than this share of the machine is measured again.
FOREIGN_MAX: Final = 0.05


@dataclass(frozen=True, slots=True)
class Load:
    """Processor time a second, of a stretch of `wall_s`."""

    wall_s: float
    cores: int
    busy_cores: float
    stolen_cores: float
    foreign_cores: float

    @property
    def disturbed(self) -> bool:
        return self.foreign_cores > FOREIGN_MAX * self.cores


@dataclass(frozen=True, slots=True)
class _Reading:
    at_s: float
    cores: int
    idle_s: float
    stolen_s: float
    interrupts_s: float
    own_s: float


class Machine:
    """Reads the counters once, at its making, and then the difference to them. `pids` are the run's processes."""

    def __init__(self, pids: Collection[int]) -> None:
        self._pids = pids
        self._before = _reading(pids)

    def load(self) -> Load:
        """Since it was made."""
        before, after = self._before, _reading(self._pids)
        wall_s = max(1e-9, after.at_s - before.at_s)
        busy_s = max(0.0, after.cores * wall_s - (after.idle_s - before.idle_s))
        known_s = (after.own_s - before.own_s) + (after.interrupts_s - before.interrupts_s)
        return Load(
            wall_s=wall_s,
            cores=after.cores,
            busy_cores=busy_s / wall_s,
            stolen_cores=(after.stolen_s - before.stolen_s) / wall_s,
            foreign_cores=max(0.0, busy_s - known_s) / wall_s,
        )


def _reading(pids: Collection[int]) -> _Reading:
    with (_PROC / "stat").open() as source:
        total = source.readline()
        cores = sum(line.startswith("cpu") for line in source)
    _, _, _, idle, waiting, hard, soft, stolen = (int(word) / _TICKS_PER_S for word in total.split()[1:9])
    own_s = sum(map(_cpu_s, pids))
    return _Reading(monotonic(), cores, idle + waiting, stolen, hard + soft, own_s)


def _cpu_s(pid: int) -> float:
    """Processor time of a process; 0 of one that is gone, whose end is somebody else's matter."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

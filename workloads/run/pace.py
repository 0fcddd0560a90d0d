"""What a run has learned of how fast each cell goes, from visit to visit: how much to store for consumers, and how long
a window must be for its rate to mean something."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from workloads.spec.plan import Cell

# A rate of less than this is marked as too few by the analysis, and never shown as a ratio.
MESSAGES_MIN: Final = 1_000
BATCHES_MIN: Final = 50
# A window gets somewhat longer than the slowest needs, and so many times longer than asked for at most.
MARGIN: Final = 1.3
LONGER_MAX: Final = 10.0

# Where measuring again did not help this often in a row, so many windows follow in which it is not tried.
SKIPPED_MAX: Final = 64

ENDS: Final = {"production": ("producer",), "consumption": ("consumer",), "both": ("producer", "consumer")}


@dataclass(slots=True)
class Pace:
    rates: dict[tuple[str, str, str], float] = field(default_factory=dict)  # cell, architecture, role -> messages/s
    longer: dict[tuple[str, str], float] = field(default_factory=dict)  # cell, window -> factor of the asked length
    in_vain: int = 0  # windows in a row that were disturbed when they were measured again, too
    skipped: int = 0  # disturbed windows that are left as they are, before it is tried again

    def note(self, cell: Cell, architecture: str, rates: Mapping[str, list[float]]) -> None:
        """Remember the last rate of each role."""
        for role, found in rates.items():
            self.rates[cell.id, architecture, role] = found[-1]

    def rate(self, cell: Cell, architecture: str, role: str) -> float:
        """Messages/s, as last seen; 0 where it was not."""
        return self.rates.get((cell.id, architecture, role), 0.0)

    def factor(self, cell: Cell, window: str) -> float:
        """How many times longer than asked for a window is: the same on all architectures."""
        return self.longer.get((cell.id, window), 1.0)

    def lengthens(self, cell: Cell, window: str, duration_s: float, architectures: Iterable[str]) -> bool:
        """Whether the windows that were just measured were too short for the slowest; then they are longer from now."""
        least = max(MESSAGES_MIN, BATCHES_MIN * cell.batch_size)
        slowest = min((self.rate(cell, name, role) for name in architectures for role in ENDS[window]), default=0.0)
        before = self.factor(cell, window)
        needed = LONGER_MAX if slowest <= 0 else least / (slowest * duration_s)
        if needed <= before or before >= LONGER_MAX:
            return False
        self.longer[cell.id, window] = min(LONGER_MAX, MARGIN * needed)
        return True

    def tries_again(self, attempt: int, disturbed: bool) -> bool:
        """Whether a window is measured again: it is worth it where disturbances pass, and not where they stay."""
        if attempt > 1:
            self.in_vain = self.in_vain + 1 if disturbed else 0
            self.skipped = min(SKIPPED_MAX, 2**self.in_vain) if disturbed else 0
            return False
        if disturbed and self.skipped:
            self.skipped -= 1
            return False
        return disturbed

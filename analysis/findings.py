"""What Spark found: finished rows, sorted, ready to be written, drawn and told.

Nothing below this line of the analysis computes from raw records; tables, figures and the report only arrange.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Found = Mapping[str, Any]
Cell = tuple[Any, ...]
ROLES = ("production", "consumption")
WINDOWS = (*ROLES, "both")
CONTROL = "static"
PAPER_PAIR = ("dsbs", "zookeeper")  # the proposal, and what it is compared against
_ORDER = ("others", "batch_size", "message_size", "mode")


@dataclass(frozen=True, slots=True)
class Findings:
    """Every finished DataFrame of the analysis, as rows."""

    trials: tuple[Found, ...]  # one row a trial and role, calibration trials too
    cells: tuple[Found, ...]
    ratios: tuple[Found, ...]
    latency: tuple[Found, ...]
    over_time: tuple[Found, ...]
    coordination: tuple[Found, ...]
    resources: tuple[Found, ...]
    batches: tuple[Found, ...]
    equality: tuple[Found, ...]
    published: tuple[Found, ...]  # the paper's numbers as they are
    paper_comparison: tuple[Found, ...]
    paper_audit: tuple[Found, ...]
    scale: tuple[Found, ...]  # what `brokerlab scale` wrote into the folder, or nothing

    @property
    def architectures(self) -> tuple[str, ...]:
        """In the order of the experiments file."""
        ranks = {row["architecture"]: row["architecture_rank"] for row in self.trials if row["kind"] == "measured"}
        return tuple(sorted(ranks, key=lambda name: (ranks[name], name)))


def cell_of(row: Found) -> Cell:
    """What tells a cell from another, in the order in which cells are shown."""
    return tuple(row[name] for name in _ORDER)


def middle_cell(cells: Iterable[Cell], mode: str) -> Cell | None:
    """One cell to look at closely: the middle one of that mode, or of all."""
    every = sorted(set(cells))
    own = [cell for cell in every if cell[-1] == mode] or every
    return own[len(own) // 2] if own else None


def in_order(rows: Iterable[Found], *then: str) -> tuple[Found, ...]:
    """Sorted by cell, role and architecture, then by the columns named: the same on any number of partitions."""

    def key(row: Found) -> tuple[object, ...]:
        role = WINDOWS.index(row.get("role") or row.get("window") or ROLES[0])
        axes = tuple(row[name] for name in _ORDER if name in row)
        ranks = tuple(row[name] for name in ("architecture_rank", "architecture") if name in row)
        return (axes, role, row.get("metric", ""), ranks, tuple(row[name] for name in then))

    return tuple(sorted(rows, key=key))


def size_text(size: int) -> str:
    """8 B, 1 KB, 128 KB: as the experiments file writes sizes."""
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"

"""What the analysis found: finished rows, sorted, ready to be written, drawn and told.

What comes after this computes nothing from raw records: tables, figures and the report only arrange.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Found = Mapping[str, Any]
Cell = tuple[Any, ...]
ROLES = ("production", "consumption")
WINDOWS = (*ROLES, "both")
UNITS = {"rps": "messages/s", "kbps": "KB/s"}
CONTROL = "static"
PAPER_PAIR = ("dsbs", "zookeeper")  # the proposal, and what it is compared against
_ORDER = ("others", "batch_size", "message_size", "mode")


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the analysis found, as rows.

    CELL is cell, others, message_size, batch_size, mode; ARCH is architecture, architecture_rank. `role` is production
    or consumption. An interval is of 95 % unless the column says otherwise; what is not known is None.
    """

    # A window and role (a window `both` gives two): trial_id, kind, CELL, ARCH, system, try, round, place, number,
    # window, role, verdict, reason, messages, window_s, rps, kbps (None where it does not count), foreign (share of the
    # machine), attempts, used, disturbed, unsettled, few.
    windows: tuple[Found, ...] = ()
    # A trial and role, calibration trials too, with the audit's counts; rps and kbps are means of the used windows.
    trials: tuple[Found, ...] = ()
    # CELL, ARCH, role, metric (rps | kbps): n (blocks), windows, mean, sd, cv, low, high, geometric.
    cells: tuple[Found, ...] = ()
    # CELL, ARCH, role, against, against_rank, n (blocks), rounds, ratio, low, high, sd, degrees, moderated, p, verdict
    # (faster | slower | undecided | one try | too few), equal (the 90 % interval lies within 5 %), survives
    # (Benjamini-Hochberg at 5 % within the pair), rounds_more (None when decided).
    ratios: tuple[Found, ...] = ()
    # ARCH, against, against_rank, family (production | consumption | streaming), metric (rps | cpu_us), n (blocks),
    # cells, left_out (cells that a block lacks), ratio, low, high, sd, degrees, p, p_holm (None unless primary and
    # rps), primary, verdict, equal. A cpu_us ratio below 1 is cheaper; its verdict is cheaper or dearer.
    pooled: tuple[Found, ...] = ()
    # Two names of one architecture, by family and `all`: ARCH, against, family, n, ratio, low, high, comparisons,
    # false_alarms, alarm_low, alarm_high (Clopper-Pearson), floor (a factor: no claim below it).
    zero: tuple[Found, ...] = ()
    # CELL, ARCH, load, rate (asked for), achieved, n (blocks), ack_p50_us, ack_p99_us, e2e_p50_us, e2e_p99_us.
    load: tuple[Found, ...] = ()
    latency: tuple[Found, ...] = ()  # of records of before, and of the gRPC driver's production
    over_time: tuple[Found, ...] = ()
    # Costs have a role beside the window: for a produced message, or for a consumed one. Streaming has both.
    coordination: tuple[Found, ...] = ()
    resources: tuple[Found, ...] = ()
    batches: tuple[Found, ...] = ()
    equality: tuple[Found, ...] = ()
    published: tuple[Found, ...] = ()  # the paper's numbers, unchanged
    paper_comparison: tuple[Found, ...] = ()  # a published cell and role, once
    paper_audit: tuple[Found, ...] = ()
    scale: tuple[Found, ...] = ()  # of `brokerlab scale`, where its table is in the folder
    # schema_version, primary (pairs of architecture and against), window_s (None: whole windows), rounds (the fewest
    # and the most of a cell in a block), blocks, in_flight (values), fetch_ahead (values), cores, windows, disturbed,
    # unsettled, few, unknown (windows whose foreign load is not known), precision, budget_s, spent_s, duration_s.
    protocol: Found = field(default_factory=dict)

    @property
    def architectures(self) -> tuple[str, ...]:
        """In the order of the experiments file."""
        ranks = {row["architecture"]: row["architecture_rank"] for row in self.trials if row["kind"] == "measured"}
        return tuple(sorted(ranks, key=lambda name: (ranks[name], name)))

    @property
    def beside_control(self) -> frozenset[str]:
        """The architectures on the control's system: only their distance from the control is coordination."""
        systems = {row["architecture"]: row["system"] for row in self.trials}
        return frozenset(name for name, system in systems.items() if system == systems.get(CONTROL))

    @property
    def counting(self) -> frozenset[str]:
        """The architectures whose brokers count what they do; of the others no counter is zero, all are unknown."""
        served = {row["architecture"] for row in self.batches if row["broker"] is not None}
        return frozenset(served | {row["architecture"] for row in self.coordination})


def cell_of(row: Found) -> Cell:
    """What tells one cell from another, in the order in which cells are shown."""
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


def window_text(window: str) -> str:
    """What readers call a window: both roles at once are streaming."""
    return "streaming" if window == "both" else window


def size_text(size: int) -> str:
    """8 B, 1 KB, 128 KB: as the experiments file writes sizes."""
    for unit, factor in (("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= factor and size % factor == 0:
            return f"{size // factor} {unit}"
    return f"{size} B"

"""The tables of rates and latency: who is faster, by how much, how sure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from analysis.findings import CONTROL, Findings, Found
from analysis.measures import saturation
from analysis.report.columns import AGAINST, ARCHITECTURE, CELL, RATIO, ROLE, by_architecture
from analysis.report.formats import Column, Table

_SATURATED = Column("saturated", "Saturated")


def comparison(found: Findings) -> Table:
    """Every two architectures, cell by cell."""
    return Table(
        name="comparison",
        title="Architectures compared, cell by cell",
        note="Ratio of geometric mean rates, tries paired by block, with its 95 % interval. Faster and slower mean "
        "that the whole interval lies on that side of 1. Saturated: the processes that used 90 % or more of a core; "
        "where a client is among them, the ratio says what the client can do.",
        columns=(
            ARCHITECTURE,
            AGAINST,
            *CELL,
            ROLE,
            Column("n", "Pairs", "count"),
            *RATIO,
            Column("verdict", "Verdict"),
            _SATURATED,
        ),
        rows=_by_pair(_both_marked(found)),
        sections=("architecture", "against"),
    )


def _both_marked(found: Findings) -> Iterable[Found]:
    full = saturation.saturated(found)
    for row in found.ratios:
        if row["metric"] == "rps":
            names = (row["architecture"], row["against"])
            parts = [f"{full[at]} of {at[0]}" for name in names if (at := (name, row["cell"], row["role"])) in full]
            yield {**row, "saturated": ", ".join(parts)}


def _by_pair(rows: Iterable[Found]) -> tuple[Found, ...]:
    return tuple(sorted(rows, key=lambda row: (row["against_rank"], row["architecture_rank"])))


def coordination_tax(found: Findings) -> Table:
    """The share of the rate that each architecture on the control's system loses to coordination."""
    return Table(
        name="coordination_tax",
        title="Coordination tax",
        note="1 - rate / rate of `static`, which coordinates nothing: the share of the rate that coordination takes, "
        "with its 95 % interval. A negative tax is a rate above that of `static`.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            Column("n", "Pairs", "count"),
            Column("tax", "Tax", "share"),
            Column("low", "from", "share"),
            Column("high", "to", "share"),
        ),
        rows=tuple(taxes(found)),
        sections=("architecture",),
    )


def taxes(found: Findings) -> Iterable[dict[str, Any]]:
    """1 - ratio for every ratio to the control on one system."""
    beside_control = found.beside_control
    for row in _by_pair(found.ratios):
        if (row["against"], row["metric"]) == (CONTROL, "rps") and row["architecture"] in beside_control:
            low, high = (None if row[end] is None else 1 - row[end] for end in ("high", "low"))
            yield {**row, "tax": 1 - row["ratio"], "low": low, "high": high}


def cells(found: Findings) -> Table:
    """The statistics of every cell."""
    return Table(
        name="cells",
        title="Rates and their spread",
        note="Messages/s over the valid tries: mean, standard deviation, coefficient of variation, and the 95 % "
        "interval of the mean (Student's t). One try alone has no interval. Saturated: the process that used 90 % or "
        "more of a core, and so likely limits the rate.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            Column("n", "Tries", "count"),
            Column("mean", "Mean", "number"),
            Column("sd", "SD", "number"),
            Column("cv", "CV", "share"),
            Column("low", "from", "number"),
            Column("high", "to", "number"),
            _SATURATED,
        ),
        rows=by_architecture(_marked(found)),
        sections=("architecture",),
    )


def _marked(found: Findings) -> Iterable[Found]:
    full = saturation.saturated(found)
    for row in found.cells:
        if row["metric"] == "rps":
            yield {**row, "saturated": full.get((row["architecture"], row["cell"], row["role"]), "")}


def latency(found: Findings) -> Table:
    """Quantiles of every kind of latency."""
    quantiles = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "max": "max"}
    rows = [{**row, **{f"{q}_us": row[f"{q}_ns"] / 1000 for q in quantiles}} for row in found.latency]
    return Table(
        name="latency",
        title="Latency",
        note="Microseconds, over all valid tries together. A producer request lasts from send to acknowledgement, a "
        "consumer request from fetch to answer; end to end is from the producer's timestamp to receipt.",
        columns=(
            Column("kind", "Kind"),
            *CELL,
            ARCHITECTURE,
            Column("n", "Measured", "count"),
            *(Column(f"{name}_us", f"{title} (µs)", "number") for name, title in quantiles.items()),
        ),
        rows=tuple(sorted(rows, key=lambda row: str(row["kind"]))),
        sections=("kind",),
    )

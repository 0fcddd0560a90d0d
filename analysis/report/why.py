"""Why: for each architecture, what a message costs in coordination, in one cell that stands for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from analysis.findings import ROLES, Cell, Findings, Found, cell_of, size_text
from analysis.measures import request_time
from analysis.report import answer
from analysis.report.formats import Column, Table
from analysis.report.naming import Name

_TITLES = {"production": "produce", "consumption": "consume"}
_SERVERS = ("broker", "coordinator")


def why(found: Findings, names: Mapping[str, Name]) -> Table:
    """One row an architecture of the answer, at the reference cell."""
    cell = answer.reference_cell(found)
    where = f"{size_text(cell[2])}, batch {cell[1]}, {cell[3]}" if cell else ""
    return Table(
        name="why",
        title=f"Why: the cost of coordination at {where}",
        note="Coordination requests for 1,000 messages; how long a request of a client waited for one; the share of a "
        "request's time that coordination adds to that of static; processor time of the brokers and the coordinator.",
        columns=(
            Column("architecture", "Architecture"),
            Column("label", "In words"),
            *(
                Column(f"{name}_{role}", f"{title}: {_TITLES[role]}", kind)
                for name, title, kind in _COLUMNS
                for role in ROLES
            ),
        ),
        rows=tuple(_rows(found, cell, names)) if cell else (),
    )


_COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("requests", "Requests", "number"),
    ("wait_us", "Wait (µs)", "number"),
    ("share", "Share of the time", "share"),
    ("cpu_us", "CPU (µs/message)", "number"),
)


def _rows(found: Findings, cell: Cell, names: Mapping[str, Name]) -> Iterable[dict[str, Any]]:
    shown = {name for pair in answer.pairs(found) for name in pair}
    splits = {(row["architecture"], row["window"]): row for row in request_time.splits(found) if cell_of(row) == cell}
    asked = {(row["architecture"], row["window"]): row for row in request_time.requests(found) if cell_of(row) == cell}
    for name in found.architectures:
        if shown and name not in shown:
            continue
        row: dict[str, Any] = {"architecture": name, "label": names[name].label if name in names else name}
        for role in ROLES:
            split, one = splits.get((name, role)), asked.get((name, role))
            row[f"requests_{role}"] = _operations(found, name, cell, role)
            row[f"wait_us_{role}"] = one and one["wait_us"]
            row[f"share_{role}"] = split and split["coordination_us"] / split["request_us"]
            row[f"cpu_us_{role}"] = _processor(found.resources, name, cell, role)
        yield row


def _operations(found: Findings, name: str, cell: Cell, role: str) -> float | None:
    if name not in found.counting:
        return None
    return sum(
        row["operations"] or 0.0
        for row in found.coordination
        if (row["architecture"], cell_of(row), row["role"]) == (name, cell, role)
    )


def _processor(resources: Iterable[Found], name: str, cell: Cell, role: str) -> float | None:
    own = [
        row["cpu_us_per_message"]
        for row in resources
        if (row["architecture"], cell_of(row), row["role"]) == (name, cell, role) and row["process"] in _SERVERS
    ]
    return None if not own or None in own else sum(own)

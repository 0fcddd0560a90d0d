"""The processes that kept a whole core busy: they likely limit the rate, whatever the architecture does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.findings import ROLES, Findings, Found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The share of a core from which a process counts as the limit of the rate.
BUSY_CORES = 0.9


def busiest(found: Findings, architecture: str, window: str) -> Sequence[Found]:
    """For each cell, the row of the busiest process."""
    most: dict[str, Found] = {}
    for row in found.resources:
        if (row["architecture"], row["window"]) != (architecture, window) or row["cores_busiest"] is None:
            continue
        best = most.get(row["cell"])
        if best is None or row["cores_busiest"] > best["cores_busiest"]:
            most[row["cell"]] = row
    return list(most.values())


def saturated(found: Findings) -> Mapping[tuple[str, str, str], str]:
    """(architecture, cell, role) -> the kind of process that kept a whole core busy in that window."""
    full = {}
    for architecture in found.architectures:
        for role in ROLES:
            for row in (*busiest(found, architecture, role), *busiest(found, architecture, "both")):
                if row["cores_busiest"] >= BUSY_CORES:
                    full[architecture, row["cell"], role] = row["process"]
    return full

"""Which process was busy with a whole core: a rate is then likely its, whatever the architecture does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis.findings import ROLES, Findings, Found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Of a core; what uses more is taken to be what limits the rate.
BUSY_CORES = 0.9


def busiest(found: Findings, architecture: str, window: str) -> Sequence[Found]:
    """Of each cell, the row of that kind of process of which one used most of a core."""
    most: dict[str, Found] = {}
    for row in found.resources:
        if (row["architecture"], row["window"]) != (architecture, window) or row["cores_busiest"] is None:
            continue
        best = most.get(row["cell"])
        if best is None or row["cores_busiest"] > best["cores_busiest"]:
            most[row["cell"]] = row
    return list(most.values())


def saturated(found: Findings) -> Mapping[tuple[str, str, str], str]:
    """(architecture, cell, role) -> the kind of process that was busy with a whole core while that was measured."""
    full = {}
    for architecture in found.architectures:
        for role in ROLES:
            for row in (*busiest(found, architecture, role), *busiest(found, architecture, "both")):
                if row["cores_busiest"] >= BUSY_CORES:
                    full[architecture, row["cell"], role] = row["process"]
    return full

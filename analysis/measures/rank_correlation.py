"""The order of the cells here and in the paper: Spearman's rank correlation of their numbers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import StatisticsError, correlation
from typing import Any

from analysis.findings import PAPER_PAIR, ROLES, Findings

_CELLS_MIN = 3
_AXES = ("message_size", "batch_size", "mode", "role")
RATIO = f"{PAPER_PAIR[0]} / {PAPER_PAIR[1]}"


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The rank correlation of two equally long series; None where one of them is constant."""
    try:
        return correlation(_ranks(first), _ranks(second))
    except StatisticsError:
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    """1 for the least; equals share the mean of their places."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def orders(found: Findings) -> tuple[Mapping[str, Any], ...]:
    """Per role: the order of the cells by each architecture's rate, and by the ratio of the two."""
    rows = []
    for what, pairs in (*_rates(found), (RATIO, _ratios(found))):
        for role in ROLES:
            own = [pair for cell, *pair in pairs if cell[-1] == role]
            rho = spearman(*zip(*own, strict=True)) if len(own) >= _CELLS_MIN else None
            if rho is not None:
                rows.append({"what": what, "role": role, "n": len(own), "rho": rho})
    return tuple(rows)


Pairs = list[tuple[tuple[Any, ...], float, float]]


def _rates(found: Findings) -> Iterable[tuple[str, Pairs]]:
    for name in sorted(PAPER_PAIR, reverse=True):
        measured = {
            tuple(row[axis] for axis in _AXES): row["mean"]
            for row in found.cells
            if (row["architecture"], row["metric"], row["others"]) == (name, "rps", "")
        }
        published: dict[tuple[Any, ...], float] = {}
        for row in found.published:
            if (row["architecture"], row["metric"], row["try"]) == (name, "rps", "avg"):
                published.setdefault(tuple(row[axis] for axis in _AXES), row["value"])  # a cell of two tables is one
        yield name, [(cell, value, measured[cell]) for cell, value in published.items() if cell in measured]


def _ratios(found: Findings) -> Pairs:
    return [(tuple(row[axis] for axis in _AXES), row["published"], row["ratio"]) for row in found.paper_comparison]

"""Two architectures side by side: which ones, and the logarithms of their ratios, window by window. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from analysis.findings import CONTROL, PAPER_PAIR, Found
from analysis.measures.rates import AXES, CELL

Names = tuple[str, str]
_CELL_ROLE = (*CELL, "role")


@dataclass(frozen=True, slots=True)
class Pair:
    """An architecture and the one that it is compared against."""

    architecture: str
    against: str
    architecture_rank: int
    against_rank: int

    @property
    def names(self) -> Names:
        return self.architecture, self.against

    def columns(self) -> dict[str, str | int]:
        """As columns of a finding."""
        return {
            "architecture": self.architecture, "architecture_rank": self.architecture_rank,
            "against": self.against, "against_rank": self.against_rank,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Logs:
    """A pair in one cell and role: the logarithms of the ratios of windows of one round, by block.

    `few` counts rounds that both measured and of which one rate does not count.
    """

    pair: Pair
    cell: Mapping[str, object]  # CELL and role
    blocks: Mapping[int, Sequence[float]]
    few: int = 0

    @property
    def means(self) -> tuple[float, ...]:
        """One mean for each block: a block is one start of the clusters, and the level of every interval."""
        return tuple(fmean(self.blocks[block]) for block in sorted(self.blocks))

    @property
    def rounds(self) -> int:
        return sum(map(len, self.blocks.values()))

    @property
    def too_few(self) -> bool:
        """Whether less than half of the rounds count: those that are left are then not like the others."""
        return self.few > self.rounds

    @property
    def family(self) -> str | None:
        return family_of(self.cell)


def family_of(row: Found) -> str | None:
    """The pooled answer that a cell's rate is part of; in streaming, that of messages that went all the way."""
    if row["mode"] == "split":
        return str(row["role"])
    return "streaming" if (row["mode"], row["role"]) == ("streaming", "consumption") else None


def pairs(rows: Iterable[Found], primary: Iterable[Names] = ()) -> list[Pair]:
    """Every two architectures, in the direction that the run asks for, or the paper; else against the control, or
    against the one that the experiments name before."""
    ranks = {row["architecture"]: row["architecture_rank"] for row in rows}
    asked = {frozenset(names): names for names in (*primary, PAPER_PAIR)}
    found = []
    for one, other in combinations(sorted(ranks, key=lambda name: (ranks[name], name)), 2):
        usual = (one, other) if other == CONTROL else (other, one)
        mine, base = asked.get(frozenset(usual), usual)
        found.append(Pair(mine, base, ranks[mine], ranks[base]))
    return found


def primary_of(rows: Iterable[Found], asked: Iterable[Sequence[str]], twins: Iterable[Names] = ()) -> list[Names]:
    """The primary questions: those that the run asked for, or the paper's, against a watching ZooKeeper too, and each
    architecture against the control. A second name of an architecture is no question."""
    names = {row["architecture"] for row in rows}
    second = {twin for twin, _ in twins}
    others = sorted(names - second - {CONTROL})
    default = (PAPER_PAIR, (PAPER_PAIR[0], f"{PAPER_PAIR[1]}-watch"), *((name, CONTROL) for name in others))
    wanted = [(str(one), str(other)) for one, other in asked] or default
    return [pair for pair in wanted if set(pair) <= names]


def logs(rows: Iterable[Found], column: str, of: Sequence[Pair]) -> list[Logs]:
    """The pairs' logarithms, from rows of valid windows, of which `column` is None where there are too few messages.

    Windows pair by block and round. Rates at a fixed load are left out: they say what was asked for.
    """
    values: dict[tuple[object, ...], dict[str, dict[tuple[int, int], float | None]]] = defaultdict(dict)
    for row in rows:
        if row["mode"] != "load":
            key = tuple(row[name] for name in _CELL_ROLE)
            values[key].setdefault(row["architecture"], {})[row["try"], row["round"]] = row[column]
    found = [
        one
        for key, by_name in values.items()
        for pair in of
        if (one := _logs(pair, dict(zip(_CELL_ROLE, key, strict=True)), by_name))
    ]
    return sorted(found, key=_place)


def _logs(
    pair: Pair, cell: dict[str, object], by_name: Mapping[str, Mapping[tuple[int, int], float | None]]
) -> Logs | None:
    mine, base = (by_name.get(name, {}) for name in pair.names)
    blocks: dict[int, list[float]] = defaultdict(list)
    few = 0
    for key in sorted(mine.keys() & base.keys()):
        one, other = mine[key], base[key]
        if one and other:
            blocks[key[0]].append(math.log(one / other))
        else:
            few += 1
    return Logs(pair, cell, dict(blocks), few) if blocks or few else None


def _place(one: Logs) -> tuple[object, ...]:
    """The order of cells, so that sums have the same digits however windows arrive."""
    return (*(one.cell[name] for name in ("others", *AXES, "role", "cell")), one.pair.names)

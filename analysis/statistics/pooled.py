"""One answer for a pair and a family of cells: production, consumption or streaming. Pure.

In each block the cells' means are averaged with equal weights; Student's t goes over the blocks. Only cells that every
block has are in it, or a block with other cells would look like a difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from statistics import fmean
from typing import Any

from analysis.statistics.intervals import CHEAPER, DEARER, FASTER, SLOWER, UNDECIDED, interval
from analysis.statistics.multiple import holm
from analysis.statistics.pairs import Logs, Names, Pair

FAMILIES = ("production", "consumption", "streaming")
RATE, COST = "rps", "cpu_us"
_ALPHA = 0.05
_WORDS = {FASTER: DEARER, SLOWER: CHEAPER}  # more processor time is worse
Row = dict[str, Any]


def pooled(rates: Sequence[Logs], costs: Sequence[Logs], primary: Sequence[Names]) -> list[Row]:
    """A row a pair, family and metric. The rates of the primary pairs have Holm's probability too, and are decided by
    it: an interval of 95 % alone would name a difference too often among so many questions."""
    rows = [row for metric, logs in ((RATE, rates), (COST, costs)) for row in _of_metric(logs, metric, primary)]
    rows.sort(key=lambda row: _place(row, primary))
    asked = [row for row in rows if row["primary"] and row["metric"] == RATE]
    for row, adjusted in zip(asked, holm([row["p"] for row in asked]), strict=True):
        row["p_holm"] = adjusted
        if adjusted is not None and adjusted >= _ALPHA:
            row["verdict"] = UNDECIDED
    return rows


def _of_metric(logs: Iterable[Logs], metric: str, primary: Sequence[Names]) -> Iterable[Row]:
    groups: dict[tuple[Pair, str], list[Logs]] = defaultdict(list)
    for one in logs:
        if one.family:
            groups[one.pair, one.family].append(one)
    for (pair, family), own in groups.items():
        if row := mean_of(own):
            if metric == COST:
                row["verdict"] = _WORDS.get(row["verdict"], row["verdict"])
            asked = frozenset(pair.names) in map(frozenset, primary)
            yield pair.columns() | row | {"family": family, "metric": metric, "primary": asked, "p_holm": None}


def mean_of(logs: Sequence[Logs]) -> Row | None:
    """The interval of the mean over cells; None where no block has a cell of which enough windows count."""
    cells = [one for one in logs if not one.too_few]
    blocks = _whole_blocks(cells)
    whole = [one for one in cells if blocks <= one.blocks.keys()]
    if not whole or not blocks:
        return None
    means = [fmean(fmean(one.blocks[block]) for one in whole) for block in sorted(blocks)]
    return interval(means).columns() | {"cells": len(whole), "left_out": len(logs) - len(whole)}


def _whole_blocks(cells: Sequence[Logs]) -> set[int]:
    """The blocks that have at least half of the cells: one that a run left unfinished leaves no cell out."""
    counts = Counter(block for one in cells for block in one.blocks)
    return {block for block, count in counts.items() if 2 * count >= len(cells)}


def _place(row: Row, primary: Sequence[Names]) -> tuple[int, ...]:
    """Primary questions first, in their order, then pairs in that of the experiments."""
    places = {frozenset(names): place for place, names in enumerate(primary)}
    question = places.get(frozenset((row["architecture"], row["against"])), len(places))
    families = list(product((RATE, COST), FAMILIES))
    own = families.index((row["metric"], row["family"]))
    return question, row["against_rank"], row["architecture_rank"], own

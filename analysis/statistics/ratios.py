"""The ratio of two architectures in each cell, its interval and its verdict. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import variance
from typing import Any

from analysis.statistics.intervals import DECIDED, PRECISION, TOO_FEW, Interval, interval
from analysis.statistics.moderated_t import Own, Spread, moderated
from analysis.statistics.multiple import survivors
from analysis.statistics.pairs import Logs, Pair

Row = dict[str, Any]
_EMPTY: Row = dict.fromkeys(("ratio", "low", "high", "sd", "degrees", "p", "rounds_more"))


def ratios(logs: Iterable[Logs], precision: float = PRECISION) -> list[Row]:
    """Every pair in every cell and role. Cells of a pair lend each other their variance."""
    by_pair: dict[Pair, list[Logs]] = defaultdict(list)
    for one in logs:
        by_pair[one.pair].append(one)
    return [row for own in by_pair.values() for row in _of_pair(own, precision)]


def _of_pair(own: Sequence[Logs], precision: float) -> list[Row]:
    spreads = _spreads([one for one in own if not one.too_few])
    rows = [_row(one, spreads.get(id(one)), precision) for one in own]
    for row, survives in zip(rows, survivors([row["p"] for row in rows]), strict=True):
        row["survives"] = survives
    return rows


def _spreads(own: Sequence[Logs]) -> dict[int, Spread]:
    """The moderated variance of the blocks' means, for each cell of a pair that has several blocks."""
    several = [(one, one.means) for one in own if len(one.blocks) > 1]
    family = [
        Own(variance(means), len(means) - 1, (one.cell["mode"], one.cell["role"])) for one, means in several
    ]  # fmt: skip
    return {id(one): spread for (one, _), spread in zip(several, moderated(family), strict=True)}


def _row(one: Logs, spread: Spread | None, precision: float) -> Row:
    named = {**one.cell, **one.pair.columns()}
    if one.too_few:
        return {**named, **_EMPTY, "n": 0, "rounds": 0, "moderated": False, "verdict": TOO_FEW, "equal": False}
    found = interval(one.means, spread)
    return {
        **named,
        **found.columns(),
        "rounds": one.rounds,
        "moderated": spread is not None and spread.moderated,
        "rounds_more": _rounds_more(found, one.rounds, precision),
    }


def _rounds_more(found: Interval, rounds: int, precision: float) -> int | None:
    """How many more rounds of this cell may decide it; None where it is decided, or one block alone tells nothing."""
    blocks = found.blocks_more(precision)
    if blocks is None or found.verdict in DECIDED or found.equal:
        return None
    return max(1, math.ceil(blocks * rounds / found.n))

"""Two runs, or a run and the paper: rates over rates, and ratios over ratios, by Welch's t on logarithms. Pure.

Nothing pairs a block of one run with one of another.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, variance
from typing import Any

from analysis.findings import Found
from analysis.measures.rates import AXES
from analysis.statistics.intervals import Interval, interval
from analysis.statistics.moderated_t import Spread
from analysis.statistics.pairs import logs, pairs

# A cell's name may differ between two runs, as it names the swept axes of its own run; these columns may not.
_ACROSS = ("others", *AXES, "role")
Row = dict[str, Any]
Key = tuple[object, ...]
Side = Mapping[Key, tuple[float, ...]]  # the blocks' means of logarithms


def rates_between(first: Sequence[Found], second: Sequence[Found]) -> list[Row]:
    """Two runs' rates of every cell and architecture that both have, from their windows: the second's over the
    first's."""
    return _between(_rates(first), _rates(second), (*_ACROSS, "architecture"), _ranks(second))


def ratios_between(first: Sequence[Found], second: Sequence[Found]) -> list[Row]:
    """Two runs' ratios of every two architectures: the second's ratio over the first's."""
    ranks = _ranks(second)
    # In the second run's order, so that both compare in one direction.
    first = [{**row, "architecture_rank": ranks[row["architecture"]]} for row in first if row["architecture"] in ranks]
    return _between(_ratios(first, second), _ratios(second, second), (*_ACROSS, "architecture", "against"), ranks)


def _ranks(windows: Iterable[Found]) -> dict[str, int]:
    return {row["architecture"]: row["architecture_rank"] for row in windows}


def _rates(windows: Iterable[Found]) -> Side:
    blocks: dict[Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in windows:
        if row["rps"]:
            blocks[(*(row[name] for name in _ACROSS), row["architecture"])][row["try"]].append(math.log(row["rps"]))
    return {key: tuple(fmean(own[block]) for block in sorted(own)) for key, own in blocks.items()}


def _ratios(windows: Sequence[Found], ordered: Sequence[Found]) -> Side:
    return {
        (*(one.cell[name] for name in _ACROSS), *one.pair.names): one.means
        for one in logs(windows, "rps", pairs(ordered))
        if not one.too_few
    }


def _between(first: Side, second: Side, names: Sequence[str], ranks: Mapping[str, int]) -> list[Row]:
    return [
        dict(zip(names, key, strict=True))
        | {f"{name}_rank": ranks[str(value)] for name, value in zip(names, key, strict=True) if name in _NAMED}
        | _compared(first[key], second[key])
        for key in sorted(first.keys() & second.keys(), key=str)
    ]


_NAMED = ("architecture", "against")


def _compared(first: Sequence[float], second: Sequence[float]) -> Row:
    several = min(len(first), len(second)) > 1
    found = Interval(1, fmean(second) - fmean(first), _welch(first, second) if several else None)
    columns = found.columns()
    own = {name: columns[name] for name in ("ratio", "low", "high", "verdict")}
    return own | _side("first", first) | _side("second", second)


def _welch(first: Sequence[float], second: Sequence[float]) -> Spread:
    """The variance of the difference of the means, with Welch's degrees of freedom."""
    parts = [variance(own) / len(own) for own in (first, second)]
    total = sum(parts)
    if not total:
        return Spread(0.0, min(len(first), len(second)) - 1, moderated=False)
    weights = [
        part * part / (len(own) - 1) for part, own in zip(parts, (first, second), strict=True)
    ]  # fmt: skip
    return Spread(total, total * total / sum(weights), moderated=False)


def _side(run: str, means: Sequence[float]) -> Row:
    """One run's geometric mean, its number of blocks, and its own verdict against 1."""
    own = interval(means)
    return {run: math.exp(own.mean), f"n_{run}": own.n, f"verdict_{run}": own.verdict}

"""The rate of each cell and architecture: mean, spread and interval over blocks. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean, stdev
from typing import Any

from analysis.findings import Found
from analysis.measures.rates import ARCHITECTURE, CELL
from analysis.statistics.student_t import quantile

METRICS = ("rps", "kbps")
_KEYS = (*CELL, *ARCHITECTURE, "role")


def cells(windows: Iterable[Found]) -> list[dict[str, Any]]:
    """Per cell, architecture, role and metric, over the means of the blocks: n, mean, sd, cv, interval.

    One block alone has neither spread nor interval: those columns are None.
    """
    groups: dict[tuple[object, ...], dict[int, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for row in windows:
        if row["rps"] is not None:
            groups[tuple(row[name] for name in _KEYS)][row["try"]].append(row)
    return [
        dict(zip(_KEYS, key, strict=True)) | {"metric": metric} | _statistics(metric, blocks)
        for key, blocks in groups.items()
        for metric in METRICS
    ]


def _statistics(metric: str, blocks: dict[int, list[Found]]) -> dict[str, Any]:
    by_round = [sorted(blocks[block], key=lambda row: int(row["round"])) for block in sorted(blocks)]
    rates = [[row[metric] for row in own] for own in by_round]
    means = [fmean(own) for own in rates]
    mean, sd, half = fmean(means), *_spread(means)
    return {
        "n": len(means),
        "windows": sum(map(len, rates)),
        "mean": mean,
        "geometric": math.exp(fmean(fmean(map(math.log, own)) for own in rates)),
        "sd": sd,
        "cv": None if sd is None or not mean else sd / mean,
        "low": None if half is None else mean - half,
        "high": None if half is None else mean + half,
    }


def _spread(means: Sequence[float]) -> tuple[float | None, float | None]:
    """The standard deviation, and half of the 95 % interval's width."""
    if len(means) == 1:
        return None, None
    sd = stdev(means)
    return sd, quantile(len(means) - 1) * sd / math.sqrt(len(means))

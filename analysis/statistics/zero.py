"""The instrument's zero: one architecture under two names, and how far the two come apart. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from analysis.findings import Found
from analysis.statistics.beta import share_interval
from analysis.statistics.intervals import DECIDED
from analysis.statistics.pairs import Logs, Names, Pair
from analysis.statistics.pooled import FAMILIES, mean_of

ALL = "all"
_FLOOR = 0.95  # share of the cells


def twins(trials: Iterable[Found]) -> list[Names]:
    """The architectures whose settings are those of one that the experiments name before: (second, first)."""
    settings: dict[str, tuple[int, str]] = {}
    for trial in trials:
        if trial["settings"] is not None and trial["kind"] == "measured":
            settings[trial["architecture"]] = (trial["architecture_rank"], trial["settings"])
    ordered = sorted(settings, key=lambda name: (settings[name][0], name))
    return [(two, one) for one, two in combinations(ordered, 2) if settings[one][1] == settings[two][1]]


def zero(ratios: Iterable[Found], logs: Sequence[Logs], of: Sequence[Names]) -> list[dict[str, Any]]:
    """For each pair of names, a row a family, and one of all: pooled ratio, false alarms, and the floor."""
    rows = list(ratios)
    return [
        row
        for pair in dict.fromkeys(one.pair for one in logs)
        if frozenset(pair.names) in map(frozenset, of)
        for family in (*FAMILIES, ALL)
        if (row := _row(pair, family, rows, logs))
    ]


def _row(pair: Pair, family: str, ratios: Sequence[Found], logs: Sequence[Logs]) -> dict[str, Any] | None:
    cells = [one for one in logs if one.pair == pair and family in (_family(one.cell), ALL)]
    # Both ends of streaming are comparisons; its pooled ratio is that of consumption, as in every other pair.
    means = mean_of([one for one in cells if family == ALL or one.family == family])
    if means is None:
        return None
    own = [
        row
        for row in ratios
        if (row["architecture"], row["against"]) == pair.names
        and family in (_family(row), ALL)
        and row["p"] is not None
    ]
    alarms = sum(row["verdict"] in DECIDED for row in own)
    low, high = share_interval(alarms, len(own)) if own else (None, None)
    away = [abs(float(np.log(row["ratio"]))) for row in own]
    return {
        **pair.columns(),
        "family": family,
        **{name: means[name] for name in ("n", "ratio", "low", "high")},
        "comparisons": len(own),
        "false_alarms": alarms,
        "alarm_low": low,
        "alarm_high": high,
        "floor": float(np.exp(np.quantile(away, _FLOOR, method="higher"))) if away else None,
    }


def _family(row: Found) -> str:
    return "streaming" if row["mode"] == "streaming" else str(row["role"])

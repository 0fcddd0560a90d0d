"""Which assumptions give the paper's numbers: the corner of a grid whose ratios come nearest to the published ones.

A corner is a pair of architectures under one set of the other axes (requests under way, commits). Its distance is the
mean of the absolute log-ratios of measured to published, over the published batch sizes. How sure it is to be the
nearest is found by drawing each measured ratio anew from its own t-distribution, with a fixed seed. Pure.
"""

from __future__ import annotations

import math
import random
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from analysis.findings import PAPER_PAIR

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from analysis.findings import Findings, Found

MESSAGE_SIZE: Final = 32
MODE, ROLE, TABLE = "split", "production", "batch_sweep"
DRAWS: Final = 4_000
SEED: Final = 2017
Corner = tuple[str, str, str]  # architecture, against, the other axes


def explain(found: Findings) -> tuple[Mapping[str, Any], ...]:
    """The corners, nearest first: distance, the ratios that make it, and in what share of draws it is the nearest.
    Only those that have every published batch size; none where there is only one corner."""
    published = published_ratios(found.published)
    corners = {corner: rows for corner, rows in _corners(found.ratios).items() if rows.keys() >= published.keys()}
    if len(corners) < 2 or not published:
        return ()
    nearest = _nearest(corners, published)
    rows = [
        {
            "architecture": corner[0],
            "against": corner[1],
            "others": corner[2],
            "distance": _distance({batch: math.log(row["ratio"]) for batch, row in rows.items()}, published),
            "nearest": nearest[corner],
            "ratios": {batch: rows[batch]["ratio"] for batch in sorted(published)},
            "published": dict(sorted(published.items())),
        }
        for corner, rows in corners.items()
    ]
    return tuple(sorted(rows, key=lambda row: (row["distance"], row["architecture"], row["against"], row["others"])))


def published_ratios(numbers: Iterable[Found]) -> dict[int, float]:
    """Batch size -> published ratio of the proposal to its baseline, in production of 32-byte messages."""
    wanted = {"table": TABLE, "message_size": MESSAGE_SIZE, "mode": MODE, "role": ROLE, "metric": "rps", "try": "avg"}
    rates = {
        (row["architecture"], row["batch_size"]): row["value"]
        for row in numbers
        if all(row[name] == value for name, value in wanted.items())
    }
    proposal, baseline = PAPER_PAIR
    return {batch: rates[proposal, batch] / rates[baseline, batch] for name, batch in rates if name == proposal}


def _corners(ratios: Iterable[Found]) -> dict[Corner, dict[int, Found]]:
    corners: dict[Corner, dict[int, Found]] = {}
    for row in ratios:
        if (row["message_size"], row["mode"], row["role"]) == (MESSAGE_SIZE, MODE, ROLE) and row["ratio"]:
            key = (row["architecture"], row["against"], row["others"])
            if key[0].startswith(PAPER_PAIR[0]) and key[1].startswith(PAPER_PAIR[1]):
                corners.setdefault(key, {})[row["batch_size"]] = row
    return corners


def _distance(logs: Mapping[int, float], published: Mapping[int, float]) -> float:
    return fmean(abs(logs[batch] - math.log(ratio)) for batch, ratio in sorted(published.items()))


def _nearest(corners: Mapping[Corner, Mapping[int, Found]], published: Mapping[int, float]) -> dict[Corner, float]:
    """Corner -> in what share of draws it is the nearest."""
    drawn = random.Random(SEED)
    wins = dict.fromkeys(corners, 0)
    for _ in range(DRAWS):
        distances = {
            corner: _distance({batch: _draw(rows[batch], drawn) for batch in published}, published)
            for corner, rows in corners.items()
        }
        wins[min(distances, key=lambda corner: distances[corner])] += 1
    return {corner: count / DRAWS for corner, count in wins.items()}


def _draw(row: Found, drawn: random.Random) -> float:
    """A log-ratio as likely as the blocks make it; one block alone has no spread."""
    if not row["sd"] or row["n"] < 2:
        return float(math.log(row["ratio"]))
    degrees = max(1.0, row["degrees"])
    t = drawn.gauss(0, 1) / math.sqrt(drawn.gammavariate(degrees / 2, 2 / degrees))
    return float(math.log(row["ratio"]) + t * row["sd"] / math.sqrt(row["n"]))

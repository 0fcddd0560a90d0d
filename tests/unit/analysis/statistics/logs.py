"""Windows and logarithms of made comparisons, for the tests of statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.statistics.pairs import Logs, Pair

NAMES = ("zookeeper", "zookeeper-watch", "dsbs", "static", "static-again")
PAIR = Pair("dsbs", "zookeeper", 2, 0)
CELL = {"cell": "c", "others": "", "message_size": 8, "batch_size": 20, "mode": "split", "role": "production"}


def window(name: str, rps: float | None, block: int = 1, turn: int = 1, **cell: Any) -> dict[str, Any]:
    """A used window of a valid trial."""
    return {
        **CELL, "architecture": name, "architecture_rank": NAMES.index(name), "try": block, "round": turn, "rps": rps,
        "kbps": rps and rps / 100, **cell,
    }  # fmt: skip


def run(rates: Mapping[str, Mapping[int, float]], **cell: Any) -> list[dict[str, Any]]:
    """One window a block: name -> block -> messages/s."""
    return [window(name, rps, block, **cell) for name, own in rates.items() for block, rps in own.items()]


def logs_of(blocks: Sequence[Sequence[float]], few: int = 0, pair: Pair = PAIR, **cell: Any) -> Logs:
    """A pair's logarithms in one cell, block by block."""
    return Logs(pair, CELL | cell, {number: tuple(own) for number, own in enumerate(blocks, 1) if own}, few)

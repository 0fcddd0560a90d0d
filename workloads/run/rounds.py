"""The order in which architectures take their windows: rows of Williams squares, in which each follows each other
equally often, so that what one leaves behind for the next falls on all alike. Pure."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


@cache
def williams(count: int) -> tuple[tuple[int, ...], ...]:
    """The rows for so many: one square where the number is even, a square and its mirror where it is odd."""
    first = [-(-step // 2) if step % 2 else (count - step // 2) % count for step in range(count)]
    square = tuple(tuple((place + turn) % count for place in first) for turn in range(count))
    return square if count % 2 == 0 else square + tuple(tuple(reversed(row)) for row in square)


def in_turn(of: Sequence[T], turn: int) -> list[T]:
    """The order of one round; `turn` counts the rounds, and the orders come round again."""
    if not of:
        return []
    rows = williams(len(of))
    return [of[place] for place in rows[turn % len(rows)]]


def first_turn(seed: int, block: int, cell_id: str) -> int:
    """Where a cell begins in the square: drawn, so that not every cell begins with the same architecture."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{block}/{cell_id}/turn".encode()).digest()[:4])

"""Many requests at once, within bounds."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

IN_FLIGHT_MAX: Final = 128
T = TypeVar("T")


async def together(work: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """All results, in order, of at most `IN_FLIGHT_MAX` at once. Raises what the first to fail raises."""
    results: list[T] = []
    remaining = iter(work)
    while part := list(islice(remaining, IN_FLIGHT_MAX)):
        # One alone, as a commit after each batch is, needs no task.
        results.extend([await part[0]] if len(part) == 1 else await asyncio.gather(*part))
    return results

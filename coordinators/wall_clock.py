"""The time of day, as far as it does not jump: nothing is to be forgotten because somebody set the clock."""

from __future__ import annotations

from time import monotonic_ns, time_ns
from typing import Final

_EPOCH_NS: Final = time_ns() - monotonic_ns()


def now_ms() -> int:
    """Milliseconds since 1970: the time of day at the start of the process, and what has passed since."""
    return (_EPOCH_NS + monotonic_ns()) // 1_000_000

"""What the buckets of a stored histogram hold: the inverse of `workloads.results.bucket_of`."""

from __future__ import annotations

from typing import Final

_PRECISION_BITS: Final = 10


def bucket_range_ns(index: int) -> tuple[int, int]:
    """Lowest and highest value of a bucket."""
    shift = max(0, (index >> _PRECISION_BITS) - 1)
    low = (index - (shift << _PRECISION_BITS)) << shift
    return low, low + (1 << shift) - 1

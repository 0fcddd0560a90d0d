"""Sizes of messages as people write them: `8B`, `32 B`, `1KB`, `8B..128KB`.

K and M are powers of 1,024, with or without the `i`: a range doubles, and from 8 B only 131,072 B, not 128,000 B, is
reached by doubling. (The rates of the report, in kbps, divide by 1,000, as the paper's do.)
"""

from __future__ import annotations

import re

_FACTORS = {"B": 1, "KB": 1024, "KiB": 1024, "MB": 1024**2, "MiB": 1024**2}
_SIZE = re.compile(r"(0|[1-9][0-9]{0,11}) ?([A-Za-z]*)", re.ASCII)
UNITS_ALLOWED = "a whole number and B, KB or MB, such as 32B or 128KB"


def parse_size(text: str) -> int:
    """Bytes; raises ValueError that says what is allowed."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"it must be {UNITS_ALLOWED}")
    number, unit = match.groups()
    if not unit:
        raise ValueError(f"it has no unit; write {number}B")
    if unit not in _FACTORS:
        raise ValueError(f"it has the unknown unit {unit!r}; it must be {UNITS_ALLOWED}")
    return int(number) * _FACTORS[unit]


def parse_sizes(text: str) -> list[int]:
    """One size, or each size of a range, doubling from the first to the last."""
    first_text, dots, last_text = text.partition("..")
    if not dots:
        return [parse_size(text)]
    first, last = parse_size(first_text.strip()), parse_size(last_text.strip())
    if first == 0 or last < first:
        raise ValueError("it is no range: the first size must be above 0 and not above the last")
    sizes = [first]
    while sizes[-1] < last:
        sizes.append(sizes[-1] * 2)
    if sizes[-1] != last:
        raise ValueError(
            f"it does not double from {format_size(first)} to {format_size(last)}; "
            f"end it at {format_size(sizes[-2])} or {format_size(sizes[-1])}"
        )
    return sizes


def format_size(size: int) -> str:
    """The shortest text that `parse_size` reads back as the same size."""
    for unit in ("MB", "KB"):
        if size and size % _FACTORS[unit] == 0:
            return f"{size // _FACTORS[unit]}{unit}"
    return f"{size}B"

"""Whole numbers as arguments: plain digits, within bounds, and refused with what is allowed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

DIGITS_MAX: Final = 19


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or len(text) > DIGITS_MAX or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"it must be a whole number from {low:,} to {high:,}, not {text!r}")
        return int(text)

    return parse

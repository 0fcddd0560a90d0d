"""Sentences, and how many numbers stand in each."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
_END = re.compile(r"(?<=[.!?:;])\s+")
NUMBERS_MAX = 2


def crowded(text: str) -> list[str]:
    """The sentences of a text that hold more numbers than a reader can weigh."""
    return [one for one in _END.split(text) if len(_NUMBER.findall(one)) > NUMBERS_MAX]

"""A verdict in words: faster, slower, equal within 5 %, or undecided and how much is missing.

The A/A says how far two equal architectures come apart. A smaller difference is no difference here, whatever its own
interval says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from analysis.findings import Findings, Found
from analysis.report.formats import significant
from analysis.statistics.student_t import quantile

Tone = Literal["faster", "slower", "equal", "open"]
DECIDED = ("faster", "slower")
_TONES: dict[str, Tone] = {"cheaper": "faster", "dearer": "slower"}  # of costs
_PRECISION = 0.1  # where the protocol names none


@dataclass(frozen=True, slots=True)
class Verdict:
    """The words, and the tone in which the page shows them."""

    words: str
    tone: Tone


def family_of(row: Found) -> str:
    """Where a cell's rate belongs: production and consumption of split mode, streaming, or a load."""
    return str(row["role"] if row["mode"] == "split" else row["mode"])


def floors(found: Findings) -> dict[str, float]:
    """By family, the factor under which two equal architectures came apart in 95 % of the cells; empty without A/A."""
    return {row["family"]: row["floor"] for row in found.zero if row["floor"] is not None}


def floor_of(floors: dict[str, float], family: str) -> float | None:
    return floors.get(family, floors.get("all"))


def percent(factor: float) -> str:
    """A factor as a distance from 1: 1.03 is 3 %."""
    return f"{significant((factor - 1) * 100, 2)} %"


def of_rate(row: Found, floor: float | None) -> Verdict:
    """The verdict of a ratio of rates."""
    said = row["verdict"]
    if said in DECIDED and floor is not None and abs(math.log(row["ratio"])) < math.log(floor):
        return Verdict(f"below the floor of {percent(floor)}", "open")
    if said == "faster":
        return Verdict("faster, yet equal within 5 %" if row["equal"] else "faster", "faster")
    if said == "slower":
        return Verdict("slower, yet equal within 5 %" if row["equal"] else "slower", "slower")
    return Verdict("equal within 5 %", "equal") if row["equal"] else _open(row)


def of_cost(row: Found) -> Verdict:
    """The verdict of a ratio of costs, of which the lower one is better."""
    if row["verdict"] in _TONES:
        return Verdict(row["verdict"], _TONES[row["verdict"]])
    return Verdict("equal within 5 %", "equal") if row["equal"] else _open(row)


def _open(row: Found) -> Verdict:
    """Nothing is decided: because there is too little to decide with, or because more is needed."""
    if row["verdict"] != "undecided":
        words = {"one try": "undecided: one block has no interval", "too few": "too few messages for a ratio"}
        return Verdict(words.get(row["verdict"], str(row["verdict"])), "open")
    rounds = row.get("rounds_more")
    if rounds is not None:
        return Verdict(f"undecided: about {_some(round(rounds), 'more round')}", "open")
    blocks = blocks_more(row)
    return Verdict(f"undecided: about {_some(blocks, 'more block')}" if blocks else "undecided", "open")


def blocks_more(row: Found, precision: float = _PRECISION) -> int | None:
    """The further blocks after which the interval should be within `precision`; None where it is, or nobody knows."""
    if row["sd"] is None or not row["degrees"]:
        return None
    needed: float = (quantile(row["degrees"]) * row["sd"] / math.log1p(precision)) ** 2
    more = math.ceil(needed) - int(row["n"])
    return more if more > 0 else None


def _some(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def counted(rows: Iterable[Verdict]) -> dict[Tone, int]:
    """How many comparisons came out how."""
    every = [row.tone for row in rows]
    return {tone: every.count(tone) for tone in ("faster", "slower", "equal", "open")}

"""The one table of the first screen: each primary comparison, and each architecture beside no coordination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.findings import CONTROL, PAPER_PAIR, Cell, Findings, Found, cell_of, middle_cell
from analysis.report import cautions, verdicts
from analysis.report.formats import significant
from analysis.report.naming import Name
from analysis.report.verdicts import Verdict

FAMILIES = {"production": "produce", "consumption": "consume", "streaming": "streaming"}
LOAD_SHOWN = 0.6
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pooled ratio: its interval, its verdict, and what to know before believing it."""

    family: str
    ratio: str
    interval: str
    verdict: Verdict
    count: str
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table. `rates` and `processor` have a place for each family, None where nothing was measured."""

    pair: Pair
    label: str
    rates: tuple[Comparison | None, ...]
    processor: tuple[Comparison | None, ...]
    requests: tuple[tuple[str, str], ...]
    latency: tuple[tuple[str, str], ...]
    note: str = ""


def pairs(found: Findings) -> tuple[Pair, ...]:
    """The pairs to show, in order: those that the run names, or the paper's; each one beside the control; and all pairs
    of an architecture that would not stand in the table."""
    measured = [(row["architecture"], row["against"]) for row in found.pooled]
    named = [(row["architecture"], row["against"]) for row in found.pooled if row["primary"]] or [PAPER_PAIR]
    twin = (aa_pair(found) or ("",))[0]
    beside = [pair for pair in measured if pair[1] == CONTROL]
    wanted = [pair for pair in dict.fromkeys((*named, *beside)) if pair in measured and twin not in pair]
    names = {name for pair in wanted for name in pair}
    lost = [pair for pair in measured if not names.issuperset(pair) and twin not in pair]
    return tuple(dict.fromkeys((*wanted, *lost)))


def aa_pair(found: Findings) -> Pair | None:
    """The two names of one architecture; None where the run has no A/A."""
    return next(((row["architecture"], row["against"]) for row in found.zero), None)


def lines(found: Findings, names: Mapping[str, Name]) -> tuple[Line, ...]:
    """The rows of the table."""
    floors = verdicts.floors(found)
    return tuple(_line(found, pair, names, floors) for pair in pairs(found))


def _line(found: Findings, pair: Pair, names: Mapping[str, Name], floors: dict[str, float]) -> Line:
    own = {(row["family"], row["metric"]): row for row in found.pooled if (row["architecture"], row["against"]) == pair}
    rates = [own.get((family, "rps")) for family in FAMILIES]
    costs = [own.get((family, "cpu_us")) for family in FAMILIES]
    said = [names.get(name, Name(name, name)) for name in pair]
    differ = said[0].commit != said[1].commit
    return Line(
        pair=pair,
        label=" / ".join(one.label for one in said),
        rates=tuple(None if row is None else _rated(row, found, floors) for row in rates),
        processor=tuple(None if row is None else _compared(row, verdicts.of_cost(row)) for row in costs),
        requests=tuple((name, text) for name in pair if (text := requests(found, name))),
        latency=tuple((name, text) for name in pair if (text := _latency(found, name))),
        note="their commits promise different things" if differ else "",
    )


def _rated(row: Found, found: Findings, floors: dict[str, float]) -> Comparison:
    verdict = verdicts.of_rate(row, verdicts.floor_of(floors, row["family"]))
    return _compared(row, verdict, found)


def _compared(row: Found, verdict: Verdict, found: Findings | None = None) -> Comparison:
    pair = (row["architecture"], row["against"])
    return Comparison(
        family=FAMILIES[row["family"]],
        ratio=significant(row["ratio"]),
        interval=interval_text(row),
        verdict=verdict,
        count=f"{row['cells']} cells, {row['n']} blocks",
        cautions=(*_left_out(row), *(cautions.of_family(found, pair, row["family"]) if found else ())),
    )


def _left_out(row: Found) -> Iterable[str]:
    if row["left_out"]:
        yield f"without {row['left_out']} cell{'' if row['left_out'] == 1 else 's'} that a block lacks"


def interval_text(row: Found) -> str:
    """Both ends of the interval; empty where there is none."""
    if row["low"] is None or row["high"] is None:
        return ""
    return f"{significant(row['low'])} to {significant(row['high'])}"


def reference_cell(found: Findings) -> Cell | None:
    """The cell in which costs are told: they are a request's, so they cannot be pooled over unlike cells."""
    plain = [cell_of(row) for row in found.cells if not row["others"]]
    return middle_cell(plain or [cell_of(row) for row in found.cells], "split")


def requests(found: Findings, name: str) -> str:
    """The coordination requests for 1,000 messages, produced and consumed, in the reference cell."""
    if name not in found.counting:
        return "" if name != CONTROL else "0"
    cell = reference_cell(found)
    return significant(
        sum(row["operations"] or 0 for row in found.coordination if (row["architecture"], cell_of(row)) == (name, cell))
    )


def load_cell(found: Findings) -> tuple[int, int] | None:
    """Message size and batch size of the load that the first screen shows: the reference cell's, or the middle one."""
    there = sorted({(row["batch_size"], row["message_size"]) for row in _near_load(found.load)})
    cell = reference_cell(found)
    if not there:
        return None
    wanted = cell[1:3] if cell else None
    batch, size = wanted if wanted in there else there[len(there) // 2]
    return size, batch


def _near_load(rows: Iterable[Found]) -> Sequence[Found]:
    return [row for row in rows if abs(row["load"] - LOAD_SHOWN) < 0.01]


def _latency(found: Findings, name: str) -> str:
    """Median and 99th percentile, from the intended send to receipt, at 60 % load."""
    place = load_cell(found)
    for row in _near_load(found.load):
        if (row["architecture"], (row["message_size"], row["batch_size"])) == (name, place):
            for kind in ("e2e", "ack"):
                both = (row[f"{kind}_p50_us"], row[f"{kind}_p99_us"])
                if None not in both:
                    return ", ".join(significant(value / 1000) for value in both) + " ms"
    return ""

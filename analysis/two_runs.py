"""Two runs side by side: how their machines, versions and specs differ, and how their rates and ratios compare.

It only arranges what `statistics.between` found; `first` and `second` are the runs in the order of the command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.findings import Found, in_order
from analysis.report.columns import AGAINST, ARCHITECTURE, BATCH, MODE, RATIO, ROLE, SIZE
from analysis.report.formats import Column, Table, significant
from analysis.statistics.intervals import FASTER, SLOWER

Manifest = Mapping[str, Any]
PAPER = "paper"  # the paper's name beside a run
_CELL = (SIZE, BATCH, MODE, ROLE)
# The parts of a manifest that make up the spec: where its hash differs, a warning names those that do.
_SPEC = ("profile", "architectures", "cells", "length", "effort", "blocks", "seed")
# The load at the start is the hour's, not the machine's.
_NOT_THE_MACHINE = frozenset({"load_at_start"})


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of two runs, in the order in which it is read."""

    names: tuple[str, str]
    warnings: tuple[str, ...]
    rates: tuple[Found, ...]
    ratios: tuple[Found, ...]


def compared(
    names: tuple[str, str], warnings: tuple[str, ...], rates: Iterable[Found], ratios: Iterable[Found]
) -> Compared:
    """Sort the rows by architecture, then by cell."""

    def by_rank(row: Found) -> tuple[int, int, str]:
        return (row.get("against_rank", 0), row["architecture_rank"], row["architecture"])

    # Sorting keeps the order of equals, which is that of the cells.
    return Compared(
        names, warnings, tuple(sorted(in_order(rates), key=by_rank)), tuple(sorted(in_order(ratios), key=by_rank))
    )


def warnings(names: tuple[str, str], manifests: tuple[Manifest | None, Manifest | None]) -> tuple[str, ...]:
    """Other reasons for which two runs may differ than what they measured."""
    unknown = [name for name, manifest in zip(names, manifests, strict=True) if manifest is None]
    first, second = manifests
    if first is None or second is None:
        return tuple(f"where {name} was made is not known: it has no manifest.json" for name in unknown)
    told = []
    for kind in ("machine", "versions"):
        differ = list(_differences(first.get(kind) or {}, second.get(kind) or {}))
        if differ:
            told.append(f"{'machines' if kind == 'machine' else kind} differ: {'; '.join(differ)}")
    if first.get("commit") != second.get("commit"):
        told.append(f"the code differs: commit {first.get('commit') or '?'} and {second.get('commit') or '?'}")
    if first.get("spec_hash") != second.get("spec_hash"):
        parts = [part for part in _SPEC if first.get(part) != second.get(part)]
        told.append(f"specs differ{': ' if parts else ''}{', '.join(parts)}")
    return tuple(told)


def _differences(first: Manifest, second: Manifest) -> Iterable[str]:
    for name in sorted({*first, *second} - _NOT_THE_MACHINE):
        if first.get(name) != second.get(name):
            yield f"{name} {first.get(name, 'unknown')} and {second.get(name, 'unknown')}"


def rates(compared: Compared) -> Table:
    """The rates of one run beside those of the other."""
    first, second = compared.names
    return Table(
        name="rates",
        title=f"Rates of {second} against those of {first}",
        note=f"Messages/s, geometric means over blocks; ratio {second} / {first} with its 95 % interval "
        "(Welch's t on logarithms; nothing pairs a block of one run with one of another).",
        columns=(
            ARCHITECTURE,
            Column("others", "Published in" if first == PAPER else "Other axes"),
            *_CELL,
            Column("first", first, "number"),
            Column("second", second, "number"),
            Column("n_first", "Blocks", "count"),
            Column("n_second", "Blocks", "count"),
            *RATIO,
            Column("verdict", f"{second} is"),
        ),
        rows=compared.rates,
        sections=("architecture",),
    )


def ratios(compared: Compared) -> Table:
    """The verdicts of one run beside those of the other."""
    first, second = compared.names
    return Table(
        name="ratios",
        title=f"Architectures compared in {first} and in {second}",
        note="Each run's own ratio (geometric means, windows paired by block and round) and verdict, and the ratio in "
        f"{second} over the ratio in {first}, with its 95 % interval (Welch's t on logarithms).",
        columns=(
            ARCHITECTURE,
            AGAINST,
            Column("others", "Published in" if first == PAPER else "Other axes"),
            *_CELL,
            Column("first", first, "number"),
            Column("verdict_first", f"in {first}"),
            Column("second", second, "number"),
            Column("verdict_second", f"in {second}"),
            *RATIO,
        ),
        rows=compared.ratios,
        sections=("architecture", "against"),
    )


def sentences(compared: Compared) -> list[str]:
    """The comparison in words: each architecture's rates, then each pair's verdicts."""
    return [*_about_rates(compared), *_about_ratios(compared)]


def _about_rates(compared: Compared) -> Iterable[str]:
    first, second = compared.names
    for (name,), rows in _grouped(compared.rates, "architecture").items():
        parts = []
        for verdict in (FASTER, SLOWER):
            own = sorted(row["ratio"] for row in rows if row["verdict"] == verdict)
            ends = f" ({significant(own[0])} to {significant(own[-1])} times)" if own else ""
            parts.append(f"{verdict} in {len(own)}{ends}")
        left = sum(row["verdict"] not in (FASTER, SLOWER) for row in rows)
        yield (
            f"{name}: of {len(rows)} rates, {second} is {parts[0]} and {parts[1]} than {first}; "
            f"in {left} the difference cannot be told from chance."
        )


def _about_ratios(compared: Compared) -> Iterable[str]:
    for (name, against), rows in _grouped(compared.ratios, "architecture", "against").items():
        same = sum(row["verdict_first"] == row["verdict_second"] for row in rows)
        turned = sum({row["verdict_first"], row["verdict_second"]} == {FASTER, SLOWER} for row in rows)
        moved = sum(row["verdict"] in (FASTER, SLOWER) for row in rows)
        yield (
            f"{name} against {against}: both runs say the same in {same} of {len(rows)} cells, the opposite in "
            f"{turned}; the size of the ratio differs by more than chance in {moved}."
        )


def _grouped(rows: Sequence[Found], *keys: str) -> dict[tuple[str, ...], list[Found]]:
    groups: dict[tuple[str, ...], list[Found]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups

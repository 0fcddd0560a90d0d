"""A forest plot for each pair: the answer over all cells, each cell's ratio, and the A/A beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes

from analysis.charts.style import Drawn, Look, canvas, drawn, log_ratio_axis, looks, tip
from analysis.findings import Cell, Findings, Found, cell_of, size_text
from analysis.report import answer, verdicts
from analysis.report.formats import significant

Place = tuple[str, int, int]  # other axes, batch size, message size: a row that both modes share
_TITLES = {"production": "Produce, split", "consumption": "Consume, split", "streaming": "Streaming, all the way"}
_ALIKE_MAX = 1.1  # the least width of the axis, so that a difference of nothing looks like nothing
_GREY = "#8c959f"


def figures(found: Findings) -> Iterable[Drawn]:
    """One figure a pair of the answer, and one of the A/A."""
    again = answer.aa_pair(found)
    for pair in dict.fromkeys((*answer.pairs(found), *([again] if again else []))):
        rows = [
            row for row in found.ratios if (row["architecture"], row["against"]) == pair and row["ratio"] is not None
        ]
        if rows:
            yield _forest(found, pair, rows)


def cell_text(cell: Cell) -> str:
    """A cell in a figure: 32 B, batch 20, split."""
    others, batch, size, mode = cell
    return f"{size_text(size)}, batch {batch}, {mode}" + (f", {others}" if others else "")


def _forest(found: Findings, pair: answer.Pair, rows: Sequence[Found]) -> Drawn:
    places = sorted({cell_of(row)[:3] for row in rows})
    families = [family for family in _TITLES if any(_of_family(row, family) for row in found.ratios)]
    figure, panels = canvas(
        1.6 + 2.9 * len(families), 1.5 + 0.21 * (len(places) + 2.6), columns=len(families), sharex=True, sharey=True
    )
    look = looks(found.architectures)[pair[0]]
    for axes, family in zip(panels, families, strict=True):
        own = [row for row in rows if _of_family(row, family)]
        _ground(axes, found, family, len(places))
        _pooled(axes, found, pair, family, look)
        for row in own:
            _interval(axes, places.index(cell_of(row)[:3]) + 1, row, look, _tip_of(row))
        _again(axes, found, family, len(places) + 1)
        axes.set_title(_TITLES[family])
    every = [*rows, *(row for row in found.pooled if _is_of(row, pair))]
    ends = [row[end] for row in every for end in ("ratio", "low", "high") if row[end] is not None]
    _frame(panels, [*ends, 1 / _ALIKE_MAX, _ALIKE_MAX], [*map(_place_text, places)])
    figure.supxlabel(f"rate of {pair[0]} / rate of {pair[1]}: right of 1, {pair[0]} is faster", fontsize=9)
    caption = (
        f"{pair[0]} / {pair[1]}: the ratio over all cells, each cell's, and the A/A, with 95 % intervals. Hollow: "
        "undecided. Grey band: the floor, within which nothing is claimed."
    )
    name = f"ratio_{pair[0]}_{pair[1]}".replace("-", "_")
    return drawn(name, caption, figure, wide=True, table="comparison")


def _of_family(row: Found, family: str) -> bool:
    return verdicts.family_of(row) == family and (family != "streaming" or row["role"] == "consumption")


def _is_of(row: Found, pair: answer.Pair) -> bool:
    return (row["architecture"], row["against"], row["metric"]) == (*pair, "rps")


def _place_text(place: Place) -> str:
    others, batch, size = place
    return f"{size_text(size)}, batch {batch}" + (f", {others}" if others else "")


def _ground(axes: Axes, found: Findings, family: str, cells: int) -> None:
    axes.axvline(1, color="black", linewidth=0.8)
    floor = verdicts.floor_of(verdicts.floors(found), family)
    if floor is not None:
        band = axes.axvspan(1 / floor, floor, color="#d0d7de", alpha=0.7, zorder=0)
        tip(band, f"floor: {verdicts.percent(floor)}")
    for line in (0.5, cells + 0.5):
        axes.axhline(line, color="#8c959f", linewidth=0.6)
    axes.grid(visible=False, axis="y")


def _pooled(axes: Axes, found: Findings, pair: answer.Pair, family: str, look: Look) -> None:
    for row in found.pooled:
        if _is_of(row, pair) and row["family"] == family:
            _interval(axes, 0, row, Look(look.colour, "D", look.line), _tip_of(row), size=7)
            label = f"{significant(row['ratio'])}"
            axes.annotate(
                label, (row["ratio"], 0), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8,
                fontweight="bold", color=look.colour,
            )  # fmt: skip


def _again(axes: Axes, found: Findings, family: str, place: int) -> None:
    for row in found.zero:
        if row["family"] == family and row["ratio"] is not None:
            text = f"A/A: {significant(row['ratio'])} ({answer.interval_text(row)})"
            _interval(axes, place, {**row, "verdict": "undecided"}, Look(_GREY, "o", "-"), text)


def _interval(axes: Axes, y: int, row: Found, look: Look, text: str, size: float = 5) -> None:
    """A mark and its interval: full where it is decided."""
    names = [row["architecture"], row["against"]]
    cell = (row["message_size"], row["batch_size"], row["mode"]) if "mode" in row else ()
    decided = row["verdict"] in verdicts.DECIDED
    if row["low"] is not None:
        (line,) = axes.plot([row["low"], row["high"]], [y, y], color=look.colour, linewidth=1.3)
        tip(line, text, names, cell)
    (mark,) = axes.plot(
        [row["ratio"]], [y], marker=look.mark, color=look.colour, markersize=size, linestyle="none",
        markerfacecolor=look.colour if decided else "white", markeredgewidth=1.2,
    )  # fmt: skip
    tip(mark, text, names, cell)


def _tip_of(row: Found) -> str:
    where = cell_text(cell_of(row)) + f", {row['role']}" if "mode" in row else f"all cells, {row['family']}"
    interval = answer.interval_text(row) or "no interval"
    return (
        f"{row['architecture']} / {row['against']}, {where}: {significant(row['ratio'])} ({interval}), n = {row['n']}, "
        f"{row['verdict']}"
    )


def _frame(panels: Sequence[Axes], ends: Sequence[float], cells: Sequence[str]) -> None:
    texts = ["all cells", *cells, "A/A"]
    for axes in panels:
        log_ratio_axis(axes, ends)
        axes.set_yticks(range(len(texts)), texts)
        axes.set_ylim(len(texts) - 0.4, -1.5)
    margin = math.exp(0.04 * math.log(max(ends) / min(ends)))
    panels[0].set_xlim(min(ends) / margin, max(ends) * margin)

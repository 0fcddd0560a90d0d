"""Figures over several axes: the ratio by message and batch size, and the cost of a change as clusters grow."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from analysis.charts.style import Drawn, canvas, drawn, legend_above, looks, number, tip
from analysis.findings import ROLES, Findings, Found, size_text
from analysis.measures import request_time
from analysis.report.answer import interval_text
from analysis.report.formats import significant

# From dark to light in one direction, so that it survives a printer without colours and an eye without some.
_COLOURS = "cividis"
_DARK_BELOW = 0.5
_SCALE_AXES = ("brokers", "topics", "groups")


def figures(found: Findings) -> Iterable[Drawn]:
    """The figures for which these records have data."""
    pair = request_time.pair_of(found)
    if pair is not None:
        yield from _heat_map(found, pair)
    yield from _scale(found)


def _heat_map(found: Findings, pair: tuple[str, str]) -> Iterable[Drawn]:
    rows = [
        row
        for row in found.ratios
        if (row["architecture"], row["against"], row["others"]) == (*pair, "") and row["ratio"] is not None
    ]
    sizes, batches = (sorted({row[axis] for row in rows}) for axis in ("message_size", "batch_size"))
    if len(sizes) < 2 or len(batches) < 2:
        return
    modes = sorted({row["mode"] for row in rows})
    height = 1.1 + len(modes) * (0.75 + 0.36 * len(batches))
    figure, panels = canvas(2.4 + 0.72 * len(sizes) * 2, height, columns=2, rows=len(modes), sharex=True, sharey=True)
    values = [row["ratio"] for row in rows]
    # Evenly to both sides of 1, so that the middle of the scale is no difference.
    widest = max(1.05, *values, *(1 / value for value in values))
    norm = LogNorm(1 / widest, widest)
    for axes, (mode, role) in zip(panels, [(mode, role) for mode in modes for role in ROLES], strict=True):
        own = {
            (row["batch_size"], row["message_size"]): row for row in rows if (row["mode"], row["role"]) == (mode, role)
        }
        _squares(axes, own, (batches, sizes), norm)
        axes.set_title(f"{role}, {mode}")
    for axes in panels[::2]:
        axes.set_ylabel("batch size")
    for axes in panels[-2:]:
        axes.set_xlabel("message size")
    bar = figure.colorbar(ScalarMappable(norm, _COLOURS), ax=panels, fraction=0.03, label=f"rate / rate of {pair[1]}")
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(number))
    caption = (
        f"Ratio of {pair[0]} to {pair[1]} by message size and batch size. Hatched: not measured. In brackets: "
        "undecided."
    )
    yield drawn("heatmap_size_batch", caption, figure, wide=True, table="comparison")


def _squares(
    axes: Axes, own: dict[tuple[int, int], Found], across: tuple[Sequence[int], Sequence[int]], norm: LogNorm
) -> None:
    batches, sizes = across
    grid = [[own[batch, size]["ratio"] if (batch, size) in own else math.nan for size in sizes] for batch in batches]
    axes.set_facecolor("#eeeeee")
    axes.patch.set_hatch("///")
    axes.patch.set_edgecolor("#cccccc")
    axes.imshow(grid, cmap=_COLOURS, norm=norm, aspect="auto", origin="lower", interpolation="nearest")
    for (batch, size), row in own.items():
        text = significant(row["ratio"], 2)
        dark = float(norm(row["ratio"])) < _DARK_BELOW
        value = axes.text(
            sizes.index(size),
            batches.index(batch),
            text if row["verdict"] in ("faster", "slower") else f"({text})",
            ha="center", va="center", fontsize=8, color="white" if dark else "black",
        )  # fmt: skip
        tip(
            value,
            f"{size_text(size)}, batch {batch}: {significant(row['ratio'])} ({interval_text(row) or 'no interval'}), "
            f"n = {row['n']}",
            cell=(size, batch, row["mode"]),
        )
    axes.set_xticks(range(len(sizes)), [size_text(size) for size in sizes], rotation=45 if len(sizes) > 8 else 0)
    axes.set_yticks(range(len(batches)), [str(batch) for batch in batches])
    axes.grid(visible=False)


def _scale(found: Findings) -> Iterable[Drawn]:
    """A panel for each kind of change, over the axis that has most values, the others as in most rows."""
    rows = found.scale
    if not rows:
        return
    axis = max(_SCALE_AXES, key=lambda name: len({row[name] for row in rows}))
    fixed = {name: Counter(row[name] for row in rows).most_common(1)[0][0] for name in _SCALE_AXES if name != axis}
    along = [row for row in rows if all(row[name] == value for name, value in fixed.items())]
    changes = list(dict.fromkeys(row["change"] for row in along))
    figure, panels = canvas(9.6, 3.4, columns=len(changes), sharex=True, sharey=True)
    names = sorted({row["architecture"] for row in along}, reverse=True)
    for axes, change in zip(panels, changes, strict=True):
        for name, look in looks(names).items():
            own = sorted(_point(row, axis) for row in along if (row["architecture"], row["change"]) == (name, change))
            source = ", ".join(sorted({row["source"] for row in along if row["architecture"] == name}))
            x, y = zip(*own, strict=True) if own else ((), ())
            axes.plot(
                x, y, color=look.colour, marker=look.mark, linestyle=look.line, markersize=4, label=f"{name} ({source})"
            )
        axes.set_title(change)
        axes.set_xlabel(axis)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for one in (axes.xaxis, axes.yaxis):
            one.set_major_formatter(FuncFormatter(number))
            one.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    panels[0].set_ylabel("messages of one change")
    legend_above(figure)
    held = ", ".join(f"{value} {name}" for name, value in fixed.items())
    caption = f"Coordination messages that one change takes, by number of {axis} ({held}), from scale.csv."
    yield drawn("cost_against_scale", caption, figure, wide=True)


def _point(row: Found, axis: str) -> tuple[Any, Any]:
    return row[axis], row["messages"]

"""Figures beyond the paper's: ratios and taxes with intervals, latency, rate over time, processor time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from analysis.charts.style import Drawn, canvas, drawn, legend_above, looks, number, value_axis
from analysis.findings import ROLES, WINDOWS, Cell, Findings, Found, cell_of, middle_cell, size_text, window_text
from analysis.measures.latency import QUANTILES, SLICE_MS
from analysis.report.rate_tables import taxes

_TAX_SHOWN_MIN = -1.0
_SLICES_MIN = 5  # a line over fewer tells nothing
_PROCESSES = {
    "producer": ("#56B4E9", ""),
    "consumer": ("#009E73", ""),
    "broker": ("#999999", "///"),
    "coordinator": ("#CC79A7", "..."),
}


def figures(found: Findings) -> Iterable[Drawn]:
    """The figures for which these records have data."""
    for draw in (_ratios, _taxes, _latency, _over_time, _processor):
        drawn = draw(found)
        if drawn is not None:
            yield drawn


def cell_text(cell: Cell) -> str:
    """A cell in a figure: 32 B, batch 20, split."""
    others, batch, size, mode = cell
    return f"{size_text(size)}, batch {batch}, {mode}" + (f", {others}" if others else "")


def _ratios(found: Findings) -> Drawn | None:
    base = found.architectures[0] if found.architectures else ""
    rows = [row for row in found.ratios if row["against"] == base]
    if not rows:
        return None
    figure = _intervals(found, rows, "ratio", f"rate / rate of {base}", 1.0)
    for axes in figure.axes:
        _log_x(axes, rows)
    caption = f"Ratio to {base} by cell, with its 95 % interval; right of 1 is faster."
    return drawn("ratio_by_cell", caption, figure)


def _log_x(axes: Axes, rows: Sequence[Found]) -> None:
    axes.set_xscale("log")
    ends = [row[end] for row in rows for end in ("low", "high", "ratio") if row[end] is not None]
    wide = max(ends) / min(ends) > 30
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 1.5, 2, 3, 5, 7)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(number))


def _taxes(found: Findings) -> Drawn | None:
    rows = list(taxes(found))
    if not rows:
        return None
    figure = _intervals(found, rows, "tax", "coordination tax: 1 - rate / rate of static", 0.0)
    for axes in figure.axes:
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlim(left=max(axes.get_xlim()[0], _TAX_SHOWN_MIN))
    caption = "Coordination tax by cell: the lost share of the rate of static; intervals may leave the frame."
    return drawn("coordination_tax", caption, figure, wide=True)


def _intervals(found: Findings, rows: Sequence[Found], value: str, label: str, nothing: float) -> Figure:
    """Cells down, a dot and its interval for each architecture, a panel for each role; a line where nothing differs."""
    cells = sorted({cell_of(row) for row in rows})
    names = [name for name in found.architectures if any(row["architecture"] == name for row in rows)]
    styles = looks(found.architectures)
    figure, panels = canvas(8.6, 1.4 + 0.14 * len(cells) * (len(names) + 0.6), columns=2, sharex=True, sharey=True)
    for axes, role in zip(panels, ROLES, strict=True):
        axes.axvline(nothing, color="black", linewidth=0.8)
        for place, name in enumerate(names):
            own = [row for row in rows if row["architecture"] == name and row["role"] == role]
            y = [cells.index(cell_of(row)) + (place - (len(names) - 1) / 2) * 0.72 / max(1, len(names)) for row in own]
            ends = [[0 if row[end] is None else abs(row[value] - row[end]) for row in own] for end in ("low", "high")]
            axes.errorbar(
                [row[value] for row in own],
                y,
                xerr=ends,
                linestyle="none",
                color=styles[name].colour,
                marker=styles[name].mark,
                markersize=4,
                capsize=2,
                elinewidth=1,
                label=name,
            )
        axes.set_title(role)
        axes.set_xlabel(label)
        axes.set_yticks(range(len(cells)), [cell_text(cell) for cell in cells])
        axes.set_ylim(len(cells) - 0.5, -0.5)
        for place in range(0, len(cells), 2):
            axes.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", zorder=0)
        axes.grid(visible=False, axis="y")
    legend_above(figure)
    return figure


def _latency(found: Findings) -> Drawn | None:
    cell = middle_cell((cell_of(row) for row in found.latency), "streaming")
    rows = [row for row in found.latency if cell_of(row) == cell]
    if not rows or cell is None:
        return None
    kinds = sorted({row["kind"] for row in rows}, reverse=True)
    figure, panels = canvas(2.9 * len(kinds) + 0.6, 3.6, columns=len(kinds), sharey=True)
    styles = looks(found.architectures)
    names = {"p999": "p99.9"}
    for axes, kind in zip(panels, kinds, strict=True):
        for row in rows:
            if row["kind"] == kind:
                look = styles[row["architecture"]]
                y = [row[f"{q}_ns"] / 1000 for q in QUANTILES]
                axes.plot(
                    y, color=look.colour, marker=look.mark, linestyle=look.line, markersize=4, label=row["architecture"]
                )
        axes.set_title(kind)
        axes.set_xticks(range(len(QUANTILES)), [names.get(q, q) for q in QUANTILES])
    value_axis(panels[0], [row[f"{q}_ns"] / 1000 for row in rows for q in QUANTILES])
    panels[0].set_ylabel("latency, µs")
    legend_above(figure)
    caption = f"Latency quantiles, {cell_text(cell)}, all valid tries together."
    return drawn("latency", caption, figure, wide=True)


def _over_time(found: Findings) -> Drawn | None:
    rows = found.over_time
    if not rows or max(row["slice"] for row in rows) < _SLICES_MIN - 1:
        return None
    cell = cell_of(rows[0])
    figure, panels = canvas(8.6, 3.4, columns=2, sharey=True)
    styles = looks(found.architectures)
    for axes, role in zip(panels, ROLES, strict=True):
        for name, line in _lines_over_time([row for row in rows if row["role"] == role]):
            look = styles[name]
            axes.plot(
                *line, look.line, color=look.colour, marker=look.mark, markevery=[-1], ms=4, linewidth=1, label=name
            )  # fmt: skip
        axes.set_title(role)
        axes.set_xlabel("seconds into the window")
        axes.xaxis.set_major_locator(MaxNLocator(5))
    value_axis(panels[0], [row["rps"] for row in rows])
    panels[0].set_ylabel("messages/s")
    legend_above(figure)
    caption = f"Rate over time in slices of {SLICE_MS} ms or more, {cell_text(cell)}; one line a try."
    return drawn("rate_over_time", caption, figure, wide=True)


def _lines_over_time(rows: Iterable[Found]) -> Iterable[tuple[str, tuple[list[float], list[float]]]]:
    lines: dict[tuple[str, int], tuple[list[float], list[float]]] = {}
    for row in rows:
        x, y = lines.setdefault((row["architecture"], row["try"]), ([], []))
        x.append(row["at_s"])
        y.append(row["rps"])
    return (((name, line)) for (name, _), line in lines.items())


def _processor(found: Findings) -> Drawn | None:
    """The same size and batch in both modes: production and consumption alone, and both together."""
    cell = middle_cell((cell_of(row) for row in found.resources), "split")
    rows = [row for row in found.resources if cell is not None and cell_of(row)[:3] == cell[:3]]
    windows = [window for window in WINDOWS if any(row["window"] == window for row in rows)]
    if not windows or cell is None:
        return None
    names = found.architectures
    figure, panels = canvas(8.6, 1.5 + 0.42 * len(names), columns=len(windows), sharey=True)
    for axes, window in zip(panels, windows, strict=True):
        _stacks(axes, [row for row in rows if row["window"] == window], names)
        axes.set_title(window_text(window))
        axes.set_xlabel("processor time, µs a message")
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    legend_above(figure)
    others, batch, size, _ = cell
    where = ", ".join([size_text(size), f"batch {batch}", *([others] if others else [])])
    return drawn("processor_time", f"Processor time a message by kind of process, {where}.", figure, wide=True)


def _stacks(axes: Axes, rows: Sequence[Found], names: Sequence[str]) -> None:
    """A bar for each architecture, a piece of it for each kind of process."""
    starts = dict.fromkeys(names, 0.0)
    for process, (colour, hatch) in _PROCESSES.items():
        used = {row["architecture"]: row["cpu_us_per_message"] for row in rows if row["process"] == process}
        own = {name: value for name, value in used.items() if value is not None}
        axes.barh(
            [names.index(name) for name in own],
            list(own.values()),
            left=[starts[name] for name in own],
            color=colour,
            hatch=hatch,
            edgecolor="white",
            height=0.7,
            label=process if own else "",
        )
        starts |= {name: starts[name] + value for name, value in own.items()}
    axes.grid(visible=False, axis="y")

"""What happens inside a window: the rate over time, and the processor time of each kind of process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from analysis.charts.ratios import cell_text
from analysis.charts.style import Drawn, canvas, drawn, legend_above, looks, tip, value_axis
from analysis.findings import ROLES, Findings, Found, cell_of, middle_cell, size_text
from analysis.measures.latency import SLICE_MS
from analysis.report import commands
from analysis.report.formats import significant

_SLICES_MIN = 5  # a line over fewer tells nothing
_PROCESSES = {
    "producer": ("#56B4E9", ""),
    "consumer": ("#009E73", ""),
    "broker": ("#999999", "///"),
    "coordinator": ("#CC79A7", "..."),
}
# Window and role of a cost, and the title of its panel.
_PANELS = {
    ("production", "production"): "split, a produced message",
    ("consumption", "consumption"): "split, a consumed message",
    ("both", "production"): "streaming, a produced message",
    ("both", "consumption"): "streaming, a consumed message",
}


def figures(found: Findings) -> Iterable[Drawn]:
    """The figures for which these records have data."""
    yield from _over_time(found)
    yield from _processor(found)


def _over_time(found: Findings) -> Iterable[Drawn]:
    rows = found.over_time
    if not rows or max(row["slice"] for row in rows) < _SLICES_MIN - 1:
        return
    cell = cell_of(rows[0])
    figure, panels = canvas(8.6, 3.4, columns=2, sharey=True)
    styles = looks(found.architectures)
    for axes, role in zip(panels, ROLES, strict=True):
        for name, x, y in _lines_over_time([row for row in rows if row["role"] == role]):
            look = styles[name]
            (line,) = axes.plot(
                x, y, look.line, color=look.colour, marker=look.mark, markevery=[-1], ms=4, linewidth=1, label=name
            )  # fmt: skip
            tip(line, name, [name])
        axes.set_title(role)
        axes.set_xlabel("seconds into the window")
        axes.xaxis.set_major_locator(MaxNLocator(5))
    value_axis(panels[0], [row["rps"] for row in rows])
    panels[0].set_ylabel("messages/s")
    legend_above(figure)
    caption = f"Rate over time in slices of {SLICE_MS} ms or more, {cell_text(cell)}; one line a block."
    yield drawn("rate_over_time", caption, figure, wide=True, table="windows", only=commands.only(cell))


def _lines_over_time(rows: Iterable[Found]) -> Iterable[tuple[str, list[float], list[float]]]:
    lines: dict[tuple[str, int], tuple[list[float], list[float]]] = {}
    for row in rows:
        x, y = lines.setdefault((row["architecture"], row["try"]), ([], []))
        x.append(row["at_s"])
        y.append(row["rps"])
    return ((name, x, y) for (name, _), (x, y) in lines.items())


def _processor(found: Findings) -> Iterable[Drawn]:
    """The same size and batch in both modes, each end by its own messages, on one axis."""
    cell = middle_cell((cell_of(row) for row in found.resources), "split")
    if cell is None:
        return
    rows = [row for row in found.resources if cell_of(row)[:3] == cell[:3] and row["mode"] != "load"]
    ends = [end for end in _PANELS if any((row["window"], row["role"]) == end for row in rows)]
    if not ends:
        return
    names = found.architectures
    height = (1.1 + 0.34 * len(names)) * ((len(ends) + 1) // 2) + 0.5
    figure, panels = canvas(8.6, height, columns=2, rows=(len(ends) + 1) // 2, sharex=True, sharey=True)
    for axes, end in zip(panels, ends, strict=False):
        _stacks(axes, [row for row in rows if (row["window"], row["role"]) == end], names)
        axes.set_title(_PANELS[end])
    for axes in panels[len(ends) :]:
        axes.set_visible(False)
    figure.supxlabel("processor time, µs a message", fontsize=9)
    panels[0].set_yticks(range(len(names)), names)
    panels[0].invert_yaxis()
    legend_above(figure)
    others, batch, size, _ = cell
    where = ", ".join([size_text(size), f"batch {batch}", *([others] if others else [])])
    only = commands.only(cell)[:2]
    caption = f"Processor time a message by kind of process, {where}."
    yield drawn("processor_time", caption, figure, wide=True, table="resources", only=only)


def _stacks(axes: Axes, rows: Sequence[Found], names: Sequence[str]) -> None:
    """A bar for each architecture, a piece of it for each kind of process."""
    starts = dict.fromkeys(names, 0.0)
    for process, (colour, hatch) in _PROCESSES.items():
        used = {row["architecture"]: row["cpu_us_per_message"] for row in rows if row["process"] == process}
        own = {name: value for name, value in used.items() if value is not None}
        bars = axes.barh(
            [names.index(name) for name in own],
            list(own.values()),
            left=[starts[name] for name in own],
            color=colour,
            hatch=hatch,
            edgecolor="white",
            height=0.7,
            label=process if own else "",
        )
        for bar, (name, value) in zip(bars, own.items(), strict=True):
            tip(bar, f"{name}, {process}: {significant(value)} µs a message", [name])
        starts |= {name: starts[name] + value for name, value in own.items()}
    axes.grid(visible=False, axis="y")

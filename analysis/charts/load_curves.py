"""Latency against the offered load: the only latency that is drawn, because a closed loop measures its own backlog."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from analysis.charts.style import Drawn, canvas, drawn, labels_at_ends, looks, tip, value_axis
from analysis.findings import Findings, Found, size_text
from analysis.report.formats import significant

_LOADS_MIN = 2  # a curve has two points
_KINDS = {"ack": "acknowledged", "e2e": "received"}
_QUANTILES = {"p50": "median", "p99": "99th percentile"}


def figures(found: Findings) -> Iterable[Drawn]:
    """One figure a size and batch."""
    for size, batch in sorted({(row["message_size"], row["batch_size"]) for row in found.load}):
        rows = [row for row in found.load if (row["message_size"], row["batch_size"]) == (size, batch)]
        if len({row["load"] for row in rows}) >= _LOADS_MIN:
            yield _curves(found, rows, size, batch)


def _curves(found: Findings, rows: Sequence[Found], size: int, batch: int) -> Drawn:
    columns = [f"{kind}_{quantile}_us" for kind in _KINDS for quantile in _QUANTILES]
    columns = [column for column in columns if any(row[column] is not None for row in rows)]
    figure, panels = canvas(9.6, 1.0 + 2.6 * ((len(columns) + 1) // 2), columns=2, rows=(len(columns) + 1) // 2)
    for axes, column in zip(panels, columns, strict=False):
        _panel(axes, found, [row for row in rows if row[column] is not None], column)
    for axes in panels[len(columns) :]:
        axes.set_visible(False)
    caption = (
        f"Latency against the offered load, {size_text(size)}, batch {batch}: from the intended send to "
        "acknowledgement and to receipt. All architectures have the same rates."
    )
    only = (f"message_size={size_text(size).replace(' ', '')}", f"batch_size={batch}", "mode=load")
    return drawn(f"latency_{size}_{batch}", caption, figure, wide=True, table="load", only=only)


def _panel(axes: Axes, found: Findings, rows: Sequence[Found], column: str) -> None:
    kind, quantile, _ = column.split("_")
    ends = []
    for name, look in looks(found.architectures).items():
        own = sorted((row for row in rows if row["architecture"] == name), key=lambda row: row["load"])
        if not own:
            continue
        x, y = [row["load"] for row in own], [row[column] / 1000 for row in own]
        (line,) = axes.plot(x, y, look.line, color=look.colour, linewidth=1.3)
        tip(line, name, [name])
        for row, at, value in zip(own, x, y, strict=True):
            (mark,) = axes.plot([at], [value], marker=look.mark, color=look.colour, markersize=5, linestyle="none")
            text = f"{name} at {row['load']:.0%} load ({significant(row['rate'])} messages/s)"
            tip(mark, f"{text}: {significant(value)} ms, n = {row['n']}", [name])
        ends.append((y[-1], name, look))
    value_axis(axes, [row[column] / 1000 for row in rows])
    axes.set_title(f"{_KINDS[kind]}, {_QUANTILES[quantile]}")
    axes.set_ylabel("ms")
    axes.set_xlabel("load, share of the sustained rate")
    axes.set_xticks(sorted({row["load"] for row in rows}))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.margins(x=0.04)
    labels_at_ends(axes, ends)

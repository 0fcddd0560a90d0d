"""Figures of a request's time: its two parts, and the ratio at other prices of coordination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from analysis.charts.style import Drawn, Look, canvas, drawn, labels_at_ends, legend_above, looks, number, tip
from analysis.findings import WINDOWS, Findings, Found, size_text, window_text
from analysis.measures import request_time
from analysis.report.formats import significant

_PARTS = (("data_us", "data path", "#999999", ""), ("coordination_us", "coordination", "#D55E00", "////"))
_BAR = 0.8


def figures(found: Findings) -> Iterable[Drawn]:
    """The figures for which these records have data."""
    rows = _of_middle_size(request_time.splits(found))
    if len(found.architectures) < 2 or not rows:
        return
    yield _times(found, rows)
    pair = request_time.pair_of(found)
    if pair is not None:
        yield from _prices(rows, pair)


def _of_middle_size(rows: Sequence[Found]) -> list[Found]:
    """One message size and no other axes: the middle one of those with most batch sizes."""
    plain = [row for row in rows if not row["others"]] or list(rows)
    batches: dict[int, set[int]] = {}
    for row in plain:
        batches.setdefault(row["message_size"], set()).add(row["batch_size"])
    most = max(map(len, batches.values()), default=0)
    sizes = sorted(size for size, found in batches.items() if len(found) == most)
    chosen = sizes[len(sizes) // 2] if sizes else None
    return [row for row in plain if row["message_size"] == chosen and row["others"] == plain[0]["others"]]


def _times(found: Findings, rows: Sequence[Found]) -> Drawn:
    windows = [window for window in WINDOWS if any(row["window"] == window for row in rows)]
    bars = sorted({(row["batch_size"], row["architecture_rank"], row["architecture"]) for row in rows})
    figure, panels = canvas(9.6, 1.3 + 0.24 * len(bars), columns=len(windows), sharex=True, sharey=True)
    for axes, window in zip(panels, windows, strict=True):
        own = {(row["batch_size"], row["architecture"]): row for row in rows if row["window"] == window}
        _bars(axes, [own.get((batch, name)) for batch, _, name in bars])
        _bands(axes, [batch for batch, _, _ in bars])
        axes.set_title(window_text(window))
        axes.set_xlabel("time of a request, µs")
    panels[0].set_xlim(0, max(row["request_us"] for row in rows) * 1.15)
    panels[0].set_yticks(range(len(bars)), [f"batch {batch}, {name}" for batch, _, name in bars])
    panels[0].invert_yaxis()
    legend_above(figure)
    size = size_text(rows[0]["message_size"])
    caption = f"A request's time, {size}: data path and coordination. Numbers: coordination's share."
    only = (f"message_size={size.replace(' ', '')}",)
    return drawn("request_time", caption, figure, wide=True, table="request_time", only=only)


def _bands(axes: Axes, batches: Sequence[int]) -> None:
    """Every second batch size on a ground of its own."""
    for place in range(0, len(set(batches)), 2):
        batch = sorted(set(batches))[place]
        first = batches.index(batch)
        axes.axhspan(first - 0.5, first + batches.count(batch) - 0.5, color="#f3f3f3", zorder=0)
    axes.set_ylim(-0.5, len(batches) - 0.5)


def _bars(axes: Axes, rows: Sequence[Found | None]) -> None:
    places = [place for place, row in enumerate(rows) if row is not None]
    there = [row for row in rows if row is not None]
    starts = [0.0] * len(there)
    for column, label, colour, hatch in _PARTS:
        lengths = [row[column] for row in there]
        bars = axes.barh(
            places, lengths, left=starts, height=_BAR, color=colour, hatch=hatch, edgecolor="white", label=label
        )  # fmt: skip
        for bar, row in zip(bars, there, strict=True):
            part = f"{row['architecture']}, batch {row['batch_size']}, {label}: {significant(row[column])} µs"
            tip(bar, f"{part} of {significant(row['request_us'])} µs", [row["architecture"]])
        starts = [start + length for start, length in zip(starts, lengths, strict=True)]
    for place, end, row in zip(places, starts, there, strict=True):
        share = row["coordination_us"] / row["request_us"]
        told = axes.text(end, place, f" {share:.0%}", va="center", ha="left", fontsize=7)
        tip(told, f"{row['architecture']}: {share:.0%} is coordination", [row["architecture"]])
    axes.xaxis.set_major_formatter(FuncFormatter(number))
    axes.grid(visible=False, axis="y")


def _prices(rows: Sequence[Found], pair: tuple[str, str]) -> Iterable[Drawn]:
    own = [row for row in rows if row["architecture"] == pair[0] and row[request_time.factor_name(1)] is not None]
    windows = [window for window in WINDOWS if any(row["window"] == window for row in own)]
    if not windows:
        return
    figure, panels = canvas(9.6, 3.4, columns=len(windows), sharex=True, sharey=True)
    batches = sorted({row["batch_size"] for row in own})
    styles = looks([f"batch {batch}" for batch in batches])
    labels: list[tuple[Axes, list[tuple[float, str, Look]]]] = []
    for axes, window in zip(panels, windows, strict=True):
        axes.axhline(1, color="black", linewidth=0.8)
        axes.axvline(1, color="#888888", linewidth=0.8, linestyle=":")
        ends: list[tuple[float, str, Look]] = []
        for batch, look in zip(batches, styles.values(), strict=True):
            y = _line([row for row in own if (row["window"], row["batch_size"]) == (window, batch)])
            axes.plot(
                request_time.FACTORS[: len(y)], y, color=look.colour, marker=look.mark, linestyle=look.line
            )  # fmt: skip
            ends += [(y[-1], f"batch {batch}", look)] if y else []
        axes.set_title(window_text(window))
        _price_axes(axes)
        labels.append((axes, ends))
    panels[0].set_ylabel(f"rate of {pair[0]} / rate of {pair[1]}")
    for axes, ends in labels:
        labels_at_ends(axes, ends)
    caption = (
        f"The ratio of {pair[0]} to {pair[1]}, if a coordination request cost so many times what it did "
        f"({size_text(rows[0]['message_size'])}; dotted: as measured). Model: data path + k x coordination."
    )
    yield drawn("what_if", caption, figure, wide=True, table="request_time")


def _line(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return [row[request_time.factor_name(factor)] for row in rows[:1] for factor in request_time.FACTORS]


def _price_axes(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(request_time.FACTORS)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(number))
    axes.set_xlabel("cost of coordination, times as measured")

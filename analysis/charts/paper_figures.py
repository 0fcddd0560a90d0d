"""Figures 1 to 12, in the paper's numbering: rates by message size and by batch size, with the published values.

Every architecture is a line with 95 % intervals. The paper's averages are hollow marks beside it, with the spread of
their tries. Split and streaming have the same axes, so that the two can be compared. A figure without data is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.axes import Axes

from analysis.charts.style import (
    DECADE,
    PUBLISHED,
    Drawn,
    Look,
    beside,
    canvas,
    drawn,
    labels_at_ends,
    looks,
    stepped_axis,
    tip,
    value_axis,
)
from analysis.findings import PAPER_PAIR, UNITS, Findings, Found, size_text
from analysis.report.formats import significant
from analysis.statistics.student_t import quantile

_TABLE_OF_AXIS = {"message_size": "size_sweep", "batch_size": "batch_sweep"}
_TRY = "avg"
_ROOM = 1.15  # above the highest end of an interval and below the lowest
_BEYOND_MAX = 2.0  # how far ends of intervals may take the axis beyond the values


@dataclass(frozen=True, slots=True)
class _Plan:
    """The content of one of the paper's figures."""

    number: int
    role: str
    metric: str
    axis: str
    mode: str


_PLANS = tuple(
    _Plan(2 * place + shift + 1, role, metric, axis, mode)
    for place, (role, metric, axis) in enumerate(
        (
            ("production", "rps", "message_size"),
            ("production", "kbps", "message_size"),
            ("consumption", "rps", "message_size"),
            ("consumption", "kbps", "message_size"),
            ("production", "rps", "batch_size"),
            ("consumption", "rps", "batch_size"),
        )
    )
    for shift, mode in enumerate(("split", "streaming"))
)


@dataclass(frozen=True, slots=True)
class _Point:
    """A measured rate, or a published average: its value and its ends."""

    name: str
    at: int
    value: float
    low: float | None
    high: float | None
    told: str


def figures(found: Findings) -> Iterable[Drawn]:
    """The paper's figures for which these records have data."""
    for plan in _PLANS:
        setting = _setting(found.cells, plan)
        if setting is not None:
            yield _paper_figure(found, plan, setting)


def _setting(cells: Sequence[Found], plan: _Plan) -> tuple[Any, str] | None:
    """The cells to draw: (the other axis's value, other axes), the setting in which the axis has most values.

    Among equals the paper's own setting wins, then the smallest. One value alone is no figure.
    """
    other = _other(plan.axis)
    along: dict[tuple[Any, str], set[int]] = {}
    for row in _wanted(cells, plan):
        along.setdefault((row[other], row["others"]), set()).add(row[plan.axis])
    papers = 20 if other == "batch_size" else 32
    ranked = sorted(along, key=lambda key: (-len(along[key]), key[1], key[0] != papers, key[0]))
    if not ranked or len(along[ranked[0]]) < 2:
        return None
    return ranked[0]


def _other(axis: str) -> str:
    return "batch_size" if axis == "message_size" else "message_size"


def _wanted(rows: Iterable[Found], plan: _Plan) -> list[Found]:
    return [row for row in rows if (row["role"], row["metric"], row["mode"]) == (plan.role, plan.metric, plan.mode)]


def _paper_figure(found: Findings, plan: _Plan, setting: tuple[Any, str]) -> Drawn:
    own, others = ([*_rows(found, replace(plan, mode=mode), setting)] for mode in _modes(plan))
    both = [row["mean"] if "mean" in row else row["value"] for row in (*own, *others)]
    is_log = max(both) / min(both) >= DECADE
    points = [*_measured(own, plan, is_log=is_log), *_published(own, plan)]
    every = [*points, *_measured(others, plan, is_log=is_log), *_published(others, plan)]
    figure, (axes,) = canvas(6.4, 3.9)
    names = [*found.architectures, *(f"{name}{PUBLISHED}" for name in PAPER_PAIR[::-1])]
    names = [name for name in names if any(point.name == name for point in points)]
    styles = looks(found.architectures) | {
        f"{name}{PUBLISHED}": replace(look, line="none") for name, look in looks(PAPER_PAIR).items()
    }
    for place, name in enumerate(names):
        _line(axes, [point for point in points if point.name == name], styles[name], (place, len(names)))
    axes.set_title(f"{plan.number}. {plan.role.capitalize()}, {UNITS[plan.metric]}, {_fixed(plan, setting)}")
    _finish(axes, plan, points, every, is_log=is_log)
    last = {point.name: point for point in points}
    labels_at_ends(axes, [(point.value, name, styles[name]) for name, point in last.items()])
    caption = _caption(plan, setting, published=any(PUBLISHED in name for name in names), is_log=is_log)
    return drawn(f"figure_{plan.number:02}", caption, figure, table="cells", only=_only(plan, setting))


def _modes(plan: _Plan) -> tuple[str, str]:
    return (plan.mode, "streaming" if plan.mode == "split" else "split")


def _rows(found: Findings, plan: _Plan, setting: tuple[Any, str]) -> Iterable[Found]:
    """The measured cells and the published tries of a figure."""
    other, table = _other(plan.axis), _TABLE_OF_AXIS[plan.axis]
    yield from (row for row in _wanted(found.cells, plan) if (row[other], row["others"]) == setting)
    if not setting[1]:
        yield from (row for row in _wanted(found.published, plan) if (row["table"], row[other]) == (table, setting[0]))


def _measured(rows: Iterable[Found], plan: _Plan, *, is_log: bool) -> Iterable[_Point]:
    """Means with their intervals: geometric ones on a logarithmic axis, so that both ends are as far away."""
    for row in sorted((row for row in rows if "mean" in row), key=lambda row: int(row[plan.axis])):
        value, low, high = geometric(row) if is_log else (row["mean"], row["low"], row["high"])
        interval = "no interval" if low is None or high is None else f"{significant(low)} to {significant(high)}"
        told = f"{row['architecture']}: {significant(value)} {UNITS[plan.metric]} ({interval}), n = {row['n']}"
        yield _Point(row["architecture"], row[plan.axis], value, low, high, told)


def geometric(row: Found) -> tuple[float, float | None, float | None]:
    """The geometric mean of a cell and its 95 % interval, from the coefficient of variation."""
    if row["cv"] is None or row["n"] < 2:
        return row["geometric"], None, None
    half = quantile(row["n"] - 1) * math.sqrt(math.log1p(row["cv"] ** 2) / row["n"])
    return row["geometric"], row["geometric"] * math.exp(-half), row["geometric"] * math.exp(half)


def _published(rows: Iterable[Found], plan: _Plan) -> Iterable[_Point]:
    """The published averages with the slowest and the fastest try."""
    tries: dict[tuple[str, int], list[float]] = {}
    averages: dict[tuple[str, int], float] = {}
    for row in rows:
        if "mean" not in row:
            key = (row["architecture"], row[plan.axis])
            if row["try"] == _TRY:
                averages[key] = row["value"]
            else:
                tries.setdefault(key, []).append(row["value"])
    for (name, at), value in sorted(averages.items(), key=lambda pair: pair[0]):
        own = tries.get((name, at), [value])
        told = f"{name}, published: {significant(value)} {UNITS[plan.metric]}, tries {significant(min(own))} to "
        yield _Point(f"{name}{PUBLISHED}", at, value, min(own), max(own), f"{told}{significant(max(own))}")


def _line(axes: Axes, points: Sequence[_Point], look: Look, place: tuple[int, int]) -> None:
    """The marks of one series, beside those of the others, each with what it says."""
    if not points:
        return
    hollow = look.line == "none"
    name = points[0].name.removesuffix(PUBLISHED)
    x = [beside(point.at, *place, step=1.05) for point in points]
    if not hollow:
        (line,) = axes.plot(x, [point.value for point in points], look.line, color=look.colour, linewidth=1.3)
        tip(line, name, [name])
    for at, point in zip(x, points, strict=True):
        if point.low is not None and point.high is not None:
            (bar,) = axes.plot([at, at], [point.low, point.high], color=look.colour, linewidth=1)
            tip(bar, point.told, [name])
        (mark,) = axes.plot(
            [at], [point.value], marker=look.mark, color=look.colour, markersize=6 if hollow else 5, linestyle="none",
            markerfacecolor="white" if hollow else look.colour, markeredgewidth=1.2,
        )  # fmt: skip
        tip(mark, point.told, [name])


def _finish(axes: Axes, plan: _Plan, points: Sequence[_Point], every: Sequence[_Point], *, is_log: bool) -> None:
    """Both modes have the same y axis."""
    steps = sorted({point.at for point in points})
    sizes = plan.axis == "message_size"
    stepped_axis(axes, steps, [size_text(step) if sizes else str(step) for step in steps])
    axes.set_xlabel("message size" if sizes else "messages per request (batch size)")
    axes.set_ylabel(f"{plan.role}, {UNITS[plan.metric]}")
    values = [point.value for point in every]
    value_axis(axes, values)
    # Intervals are shown whole, but one of few blocks may be so wide that nothing else could be read.
    ends = [end for point in every for end in (point.low, point.high) if end is not None]
    highest = min(max([*values, *ends]), _BEYOND_MAX * max(values)) * _ROOM
    lowest = max(min([*values, *ends]), min(values) / _BEYOND_MAX) / _ROOM
    axes.set_ylim(lowest if is_log else 0, highest)


def _fixed(plan: _Plan, setting: tuple[Any, str]) -> str:
    """The fixed axes of a figure: streaming, batch size 20."""
    held, others = setting
    fixed = f"batch size {held}" if plan.axis == "message_size" else f"{size_text(held)} messages"
    return ", ".join([plan.mode, fixed, *([others] if others else [])])


def _only(plan: _Plan, setting: tuple[Any, str]) -> tuple[str, ...]:
    held, others = setting
    fixed = f"batch_size={held}" if plan.axis == "message_size" else f"message_size={size_text(held).replace(' ', '')}"
    return (fixed, f"mode={plan.mode}", *(part for part in others.split(",") if part))


def _caption(plan: _Plan, setting: tuple[Any, str], *, published: bool, is_log: bool) -> str:
    axis = "message" if plan.axis == "message_size" else "batch"
    mean = "Geometric mean" if is_log else "Mean"
    paper = " Hollow: the paper's averages, from the slowest to the fastest try." if published else ""
    return (
        f"Figure {plan.number}. {plan.role.capitalize()}, {UNITS[plan.metric]}, by {axis} size "
        f"({_fixed(plan, setting)}). {mean} and 95 % interval; one that leaves the frame reaches further.{paper}"
    )

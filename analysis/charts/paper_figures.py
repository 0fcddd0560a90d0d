"""Figures 1 to 12, in the paper's numbering: rates by message size and by batch size, with the published values.

Every architecture is a line with 95 % intervals; the paper's averages are hollow marks. A figure without data is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.charts.style import (
    PUBLISHED,
    Drawn,
    Look,
    beside,
    canvas,
    drawn,
    legend_above,
    looks,
    stepped_axis,
    value_axis,
)
from analysis.findings import PAPER_PAIR, UNITS, Findings, Found, size_text

_TABLE_OF_AXIS = {"message_size": "size_sweep", "batch_size": "batch_sweep"}


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
    held, others = setting
    other = _other(plan.axis)
    measured = [row for row in _wanted(found.cells, plan) if (row[other], row["others"]) == setting]
    published = [
        row
        for row in _wanted(found.published, plan)
        if row["table"] == _TABLE_OF_AXIS[plan.axis] and row[other] == held and row["try"] == "avg" and not others
    ]
    figure, (axes,) = canvas(6.4, 3.9)
    styles = looks(found.architectures)
    for place, name in enumerate(found.architectures):
        own = [row for row in measured if row["architecture"] == name]
        _line(axes, own, plan.axis, name, styles[name], (place, len(found.architectures)))
    for name, look in looks(PAPER_PAIR[::-1]).items():
        own = [row for row in published if row["architecture"] == name]
        _hollow(axes, own, plan.axis, name, look)
    axes.set_title(f"{plan.role.capitalize()}, {_fixed(plan, setting)}")
    _finish(figure, axes, plan, [*measured, *published])
    return drawn(f"figure_{plan.number:02}", _caption(plan, setting, bool(published)), figure)


def _line(axes: Axes, rows: Sequence[Found], axis: str, name: str, look: Look, place: tuple[int, int]) -> None:
    rows = sorted(rows, key=lambda row: int(row[axis]))
    x = [beside(row[axis], *place) for row in rows]
    half = [0 if row["low"] is None else row["mean"] - row["low"] for row in rows]
    axes.errorbar(
        x,
        [row["mean"] for row in rows],
        # The interval of a wild cell may reach below zero, where no rate is and a logarithmic axis has no place.
        yerr=([min(h, row["mean"] * 0.999) for h, row in zip(half, rows, strict=True)], half),
        color=look.colour,
        marker=look.mark,
        linestyle=look.line,
        markersize=5,
        linewidth=1.4,
        capsize=2.5,
        elinewidth=1,
        label=name,
    )


def _hollow(axes: Axes, rows: Sequence[Found], axis: str, name: str, look: Look) -> None:
    if not rows:
        return
    axes.plot(
        [row[axis] for row in rows],
        [row["value"] for row in rows],
        color=look.colour,
        marker=look.mark,
        linestyle="none",
        markersize=7,
        markerfacecolor="white",
        markeredgewidth=1.3,
        label=f"{name}{PUBLISHED}",
    )


def _finish(figure: Figure, axes: Axes, plan: _Plan, rows: Sequence[Found]) -> None:
    steps = sorted({int(row[plan.axis]) for row in rows})
    sizes = plan.axis == "message_size"
    stepped_axis(axes, steps, [size_text(step) if sizes else str(step) for step in steps])
    axes.set_xlabel("message size" if sizes else "messages per request (batch size)")
    axes.set_ylabel(f"{plan.role}, {UNITS[plan.metric]}")
    value_axis(axes, [row["mean"] if "mean" in row else row["value"] for row in rows])
    legend_above(figure, columns=3)


def _fixed(plan: _Plan, setting: tuple[Any, str]) -> str:
    """The fixed axes of a figure: streaming, batch size 20."""
    held, others = setting
    fixed = f"batch size {held}" if plan.axis == "message_size" else f"{size_text(held)} messages"
    return ", ".join([plan.mode, fixed, *([others] if others else [])])


def _caption(plan: _Plan, setting: tuple[Any, str], published: bool) -> str:
    axis = "message" if plan.axis == "message_size" else "batch"
    paper = " Hollow: the paper's published averages." if published else ""
    return (
        f"Figure {plan.number}. {plan.role.capitalize()}, {UNITS[plan.metric]}, by {axis} size "
        f"({_fixed(plan, setting)}). Mean and 95 % interval; one that leaves the frame reaches further.{paper}"
    )

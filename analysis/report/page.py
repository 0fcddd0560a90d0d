"""`report.html`: one file that needs no network, the answer first, then what it rests on.

The templates escape every text; the two assets of this package and the figures, whose letters are outlines, are the
exceptions. Figures stand in the page as SVG, so that it can be mailed, and their marks can be pointed at and filtered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from analysis.charts.style import Drawn
from analysis.findings import Cell, Findings, size_text
from analysis.report import commands
from analysis.report.answer import FAMILIES, interval_text
from analysis.report.formats import Column, Row, Table, sections, written
from analysis.report.summary import Summary

_ASSETS = Path(__file__).parent / "assets"
_TEMPLATES = Path(__file__).parent / "templates"
# A browser that is told this fetches nothing, whatever a text in the page should say.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_LONG_TEXT = 60
_ROWS_OPEN, _ROWS_SHOWN = 40, 600
_MARKED = {"faster": "faster", "slower": "slower", "invalid": "slower", "failed": "slower", "holds": "faster"}
_INTERVALS = ("ratio", "mean")  # columns whose value has an interval beside it
# Section -> what it shows, by the beginning of the name; what no section asks for stands in `others`.
_TABLES = {
    "published": ("published_beside",),
    "why": ("why",),
    "cells": ("pooled", "comparison", "zero"),
    "load": ("load", "latency"),
    "paper": ("paper_", "varying_batch_size", "PERFORMANCE"),
    "methods": ("equality", "audit", "windows"),
}
_FIGURES = {
    "why": ("request_time",),
    "cells": ("ratio_",),
    "load": ("latency_",),
    "paper": ("figure_",),
}


def page(
    found: Findings,
    summary: Summary,
    tables: Sequence[Table],
    figures: Sequence[Drawn],
    manifest: Mapping[str, Any] | None,
) -> str:
    """The whole page. It says about the run what the records say, not where they lie or where the page goes."""
    run = "" if manifest is None else f"{manifest.get('profile')}, started {manifest.get('started')}"
    every = commands.cells(found, manifest)
    return _environment({cell for cell, _, _ in every}, manifest).get_template("page.html.j2").render(
        title=f"brokerlab: {run or 'a run'}",
        policy=_POLICY,
        style=(_ASSETS / "report.css").read_text(),
        script=(_ASSETS / "report.js").read_text(),
        lead=f"{run or 'a run'}: {_counted(found)}",
        summary=summary,
        families=list(FAMILIES.values()),
        choices=_choices(cell for cell, _, _ in every),
        architectures=found.architectures if len(found.architectures) > 1 else (),
        shown=_by_section(tables, _TABLES),
        drawings=_by_section(figures, _FIGURES),
        rows_open=_ROWS_OPEN,
        rows_shown=_ROWS_SHOWN,
        run_again=commands.again(manifest),
        cells_again=[
            {"text": _cell_text(cell), "anchor": anchor, "command": text, "attributes": _cell_data(cell)}
            for cell, anchor, text in every
        ],
        facts=None if manifest is None else list(_flat(manifest)),
    )  # fmt: skip


def _environment(cells: set[Cell], manifest: Mapping[str, Any] | None) -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {
        "inlined": inlined,
        "cell_of": _cell_attributes,
        "row_of": _row_attributes,
        "anchor_of": partial(_anchor, cells),
        "again": partial(commands.again, manifest),
        "parts_of": sections,
        "written": written,
    }
    return made


def _counted(found: Findings) -> str:
    measured = {row["trial_id"]: row for row in found.trials if row["kind"] == "measured"}
    return f"{len(measured):,} trials"


Named = TypeVar("Named", Drawn, Table)


def _by_section(every: Sequence[Named], named: Mapping[str, Sequence[str]]) -> dict[str, list[Named]]:
    """Each section's own, in the order of its names, and `others`."""
    found: dict[str, list[Named]] = {
        section: [one for begin in begins for one in every if _is_called(one.name, begin)]
        for section, begins in named.items()
    }
    placed = {one.name for own in found.values() for one in own}
    return {**found, "others": [one for one in every if one.name not in placed]}


def _is_called(name: str, begin: str) -> bool:
    if begin == "PERFORMANCE":
        return name.endswith("_performance")
    return name.startswith(begin) if begin.endswith("_") else name == begin


def inlined(figure: Drawn) -> str:
    """A figure as an element of the page: its width is the page's, and its ids are its own."""
    svg = figure.svg.decode()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'(?<=[ "(])(id="|xlink:href="#|url\(#|href="#)', lambda found: f"{found[1]}{figure.name}-", svg)
    opened = r'<svg \1 xmlns:xlink="http://www.w3.org/1999/xlink">'
    return re.sub(r'<svg\b[^>]*?(viewBox="[^"]*")[^>]*>', opened, svg, count=1)


def _choices(cells: Iterable[Cell]) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """What the filters offer: an axis with one value offers nothing."""
    every = list(cells)
    made = [
        ("size", "Size", [(str(size), size_text(size)) for size in sorted({cell[2] for cell in every})]),
        ("batch", "Batch", [(str(batch), str(batch)) for batch in sorted({cell[1] for cell in every})]),
        ("mode", "Mode", [(mode, mode) for mode in sorted({cell[3] for cell in every})]),
    ]
    return [one for one in made if len(one[2]) > 1]


def _cell_text(cell: Cell) -> str:
    others, batch, size, mode = cell
    return f"{size_text(size)}, batch {batch}, {mode}" + (f", {others}" if others else "")


def _cell_data(cell: Cell) -> dict[str, str]:
    _, batch, size, mode = cell
    return {"data-size": str(size), "data-batch": str(batch), "data-mode": mode}


def _anchor(cells: set[Cell], row: Row) -> str:
    """The place of the command that measures a row's cell again; empty where the row is of no cell of the run."""
    cell = tuple(row.get(name) for name in ("others", "batch_size", "message_size", "mode"))
    return commands.anchor(cell) if cell in cells else ""


def _row_attributes(row: Row) -> dict[str, str | None]:
    """By what the page filters a row."""
    names = [str(row[name]) for name in ("architecture", "against") if row.get(name)]
    axes = {"data-size": "message_size", "data-batch": "batch_size", "data-mode": "mode"}
    own = {key: None if row.get(name) is None else str(row[name]) for key, name in axes.items()}
    return {**own, "data-arch": " ".join(names) or None}


def _cell_attributes(row: Row, column: Column) -> dict[str, str | None]:
    """The classes of a cell; for numbers also the exact value, by which the page sorts, and what it rests on."""
    value = row.get(column.name)
    text = written(value, column.kind)
    classes = [
        *(["n"] if column.kind != "text" else []),
        *([_MARKED[text]] if text in _MARKED else []),
        *(["long"] if len(text) > _LONG_TEXT else []),
    ]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {
        "class": " ".join(classes) or None,
        "data-v": repr(value) if is_number else None,
        "title": _rests_on(row) if column.name in _INTERVALS else None,
    }


def _rests_on(row: Row) -> str | None:
    if "low" not in row or "high" not in row:
        return None
    count = f"; n = {row['n']}" if "n" in row else ""
    return f"{interval_text(row) or 'no interval'}{count}"


def _flat(value: object, name: str = "") -> Iterable[tuple[str, str]]:
    """The run's manifest, one line a fact."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _flat(value[key], f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for place, one in enumerate(value):
            yield from _flat(one, f"{name}[{place}]")
    else:
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)

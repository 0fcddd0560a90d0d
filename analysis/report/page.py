"""`report.html`: one file that needs no network, the answer first, then what it rests on.

The templates escape every text; the two assets of this package are the exception. Figures are inlined, so that the file
can be mailed and opened anywhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from analysis.charts.style import Drawn
from analysis.findings import Findings
from analysis.report.formats import Column, Table, sections, written
from analysis.report.summary import Summary

_ASSETS = Path(__file__).parent / "assets"
_TEMPLATES = Path(__file__).parent / "templates"
_LONG_TEXT = 60
_MARKED = {"faster", "slower", "invalid", "failed", "holds"}
_FIRST = ("ratio_by_cell",)  # the answer as a picture stands beside the answer in words
_WHY_FIGURES = ("request_time", "what_if")
_WHY_TABLES = ("request_time", "coordination_request")
_TRUTH = ("equality", "audit", "paper_audit")


def page(
    found: Findings,
    summary: Summary,
    tables: Sequence[Table],
    figures: Sequence[Drawn],
    manifest: Mapping[str, Any] | None,
) -> str:
    """The whole page. It says about the run what the records say, not where they lie or where the page goes."""
    run = "" if manifest is None else f"{manifest.get('profile')}, started {manifest.get('started')}"
    apart = (*_FIRST, *_WHY_FIGURES)
    return _environment().get_template("page.html.j2").render(
        title=f"brokerlab: {run or 'a run'}",
        style=(_ASSETS / "report.css").read_text(),
        script=(_ASSETS / "report.js").read_text(),
        heading=_heading(found),
        lead=_lead(run, found),
        summary=summary,
        first_figures=_named(figures, *_FIRST),
        why_figures=_named(figures, *_WHY_FIGURES),
        other_figures=[one for one in figures if one.name not in apart],
        why_tables=_named(tables, *_WHY_TABLES),
        other_tables=[table for table in tables if table.name not in (*_TRUTH, *_WHY_TABLES)],
        **{name: _named(tables, name) for name in _TRUTH},
        facts=None if manifest is None else list(_flat(manifest)),
    )  # fmt: skip


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals |= {
        "base64": lambda content: b64encode(content).decode(),
        "cell_of": _cell_attributes,
        "parts_of": sections,
        "written": written,
    }
    return made


def _heading(found: Findings) -> str:
    names = found.architectures
    if len(names) < 2:
        return f"One architecture measured: {names[0]}" if names else "Nothing measured"
    return f"What coordination costs: {', '.join(names[:-1])} and {names[-1]}"


def _lead(run: str, found: Findings) -> str:
    measured = {row["trial_id"]: row for row in found.trials if row["kind"] == "measured"}
    cells = {row["cell"] for row in measured.values()}
    tries = {row["try"] for row in measured.values()}
    return (
        f"{run}{': ' if run else ''}{len(measured)} trials, {len(cells)} cells, {len(tries)} "
        f"{'tries' if len(tries) > 1 else 'try'} of each."
    )


Named = TypeVar("Named", Drawn, Table)


def _named(every: Sequence[Named], *names: str) -> list[Named]:
    """Those of these names that there are, in the order of the names."""
    return [one for name in names for one in every if one.name == name]


def _cell_attributes(value: object, column: Column) -> dict[str, str | None]:
    """The classes of a cell; for numbers also the exact value, by which the page sorts."""
    text = written(value, column.kind)
    classes = [
        *(["n"] if column.kind != "text" else []),
        *([text] if text in _MARKED else []),
        *(["long"] if len(text) > _LONG_TEXT else []),
    ]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return {"class": " ".join(classes) or None, "data-v": repr(value) if is_number else None}


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

"""`report.html`: one file that needs no network, the answer first, then what it rests on.

Every text that comes from data is escaped; figures are inlined, so that the file can be mailed and opened anywhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from analysis.charts.paper_figures import Drawn
from analysis.findings import Findings
from analysis.report.formats import Column, Row, Table, sections, written
from analysis.report.summary import Summary

_ASSETS = Path(__file__).parent / "assets"
# Tables of this many rows or fewer stand open; longer ones wait for a click.
_OPEN_ROWS_MAX = 40
_LONG_TEXT = 60
_MARKED = {"faster", "slower", "invalid", "failed", "holds"}
_FIRST = "ratio_by_cell"  # the answer as a picture stands beside the answer in words
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
    """The whole page. It says of the run what the records say, not where they lie or where the page goes."""
    by_name = {table.name: table for table in tables}
    rest = [table for table in tables if table.name not in (*_TRUTH, *_WHY_TABLES)]
    apart = (_FIRST, *_WHY_FIGURES)
    why_pictures = _figures([one for one in figures if one.name in _WHY_FIGURES])
    why_tables = "".join(_of(by_name, name) for name in _WHY_TABLES)
    parts = [
        _section("Why, in numbers", "why", _paragraphs(summary.why) + why_pictures + why_tables),
        _section("The paper's hypothesis", "hypothesis", _paragraphs(summary.hypothesis)),
        _section("Before you believe it", "trust", _list(summary.trust)),
        _section("Figures", "figures", _figures([one for one in figures if one.name not in apart])),
        _section("Tables", "tables", "".join(map(_table, rest))),
        _section("What was held equal", "equality", _of(by_name, "equality")),
        _section("Audit of every trial", "audit", _of(by_name, "audit")),
        _section("The published tables, audited", "paper", _of(by_name, "paper_audit")),
        _section("Provenance", "provenance", _provenance(manifest)),
    ]
    shown = [part for part in parts if part is not None]
    links = "".join(f'<a href="#{key}">{escape(title)}</a>' for title, key, _ in shown)
    body = "".join(f'<section id="{key}"><h2>{escape(title)}</h2>{html}</section>' for title, key, html in shown)
    return _PAGE.format(
        title=escape(f"brokerlab: {_run(manifest) or 'a run'}"),
        style=(_ASSETS / "report.css").read_text(),
        script=(_ASSETS / "report.js").read_text(),
        heading=escape(_heading(found)),
        lead=escape(_lead(_run(manifest), found)),
        answer=_paragraphs(summary.answer),
        first=_figures([one for one in figures if one.name == _FIRST]),
        links=links,
        body=body,
    )


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
<h1>{heading}</h1>
<p class="lead">{lead}</p>
<div class="answer">{answer}</div>
<nav>{links}</nav>
{first}
{body}
<footer>Every number here is computed from the raw records in this folder; <code>brokerlab analyze</code> builds the
same files from them again, byte for byte. All tables are in <code>tables/</code> as CSV, Markdown and LaTeX, all
figures in <code>figures/</code> as PNG and SVG.</footer>
</main>
<dialog><img src="data:," alt=""><p class="note"></p></dialog>
<script>{script}</script>
</body>
</html>
"""


def _heading(found: Findings) -> str:
    names = found.architectures
    if len(names) < 2:
        return f"One architecture measured: {names[0]}" if names else "Nothing measured"
    return f"What coordination costs: {', '.join(names[:-1])} and {names[-1]}"


def _run(manifest: Mapping[str, Any] | None) -> str:
    """Profile and start; empty where the run left no manifest."""
    return "" if manifest is None else f"{manifest.get('profile')}, started {manifest.get('started')}"


def _lead(run: str, found: Findings) -> str:
    measured = {row["trial_id"]: row for row in found.trials if row["kind"] == "measured"}
    cells = {row["cell"] for row in measured.values()}
    tries = {row["try"] for row in measured.values()}
    return (
        f"{run}{': ' if run else ''}{len(measured)} trials, {len(cells)} cells, {len(tries)} "
        f"{'tries' if len(tries) > 1 else 'try'} of each."
    )


def _section(title: str, key: str, html: str) -> tuple[str, str, str] | None:
    return (title, key, html) if html else None


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)


def _list(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in sentences)}</ul>" if sentences else ""


_WIDE = ' class="wide"'


def _figures(figures: Sequence[Drawn]) -> str:
    if not figures:
        return ""
    shown = [
        f'<figure id="{escape(one.name)}"{_WIDE if one.wide else ""}><button type="button" title="enlarge">'
        f'<img alt="{escape(one.caption)}" src="data:image/svg+xml;base64,{b64encode(one.svg).decode()}">'
        f"</button><figcaption>{escape(one.caption)}</figcaption></figure>"
        for one in figures
    ]
    return f'<div class="figures">{"".join(shown)}</div>'


def _of(tables: Mapping[str, Table], name: str) -> str:
    return _table(tables[name]) if name in tables else ""


def _table(table: Table) -> str:
    parts = "".join(
        (f"<h4>{escape(heading)}</h4>" if heading else "") + _grid(columns, rows)
        for heading, columns, rows in sections(table)
    )
    opened = " open" if len(table.rows) <= _OPEN_ROWS_MAX else ""
    return (
        f'<details id="table-{escape(table.name)}"{opened}><summary>{escape(table.title)}</summary>'
        f'<p class="note">{escape(table.note)}</p>{parts}</details>'
    )


def _grid(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    head = "".join(
        f'<th scope="col"{_number_class(column)}><button type="button">{escape(column.title)}</button></th>'
        for column in columns
    )
    body = "".join(f"<tr>{''.join(_cell(row.get(column.name), column) for column in columns)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _number_class(column: Column) -> str:
    return "" if column.kind == "text" else ' class="n"'


def _cell(value: object, column: Column) -> str:
    text = written(value, column.kind)
    classes = [
        *(["n"] if column.kind != "text" else []),
        *([text] if text in _MARKED else []),
        *(["long"] if len(text) > _LONG_TEXT else []),
    ]
    named = f' class="{" ".join(classes)}"' if classes else ""
    exact = f' data-v="{value!r}"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
    return f"<td{named}{exact}>{escape(text)}</td>"


def _provenance(manifest: Mapping[str, Any] | None) -> str:
    """The run's manifest, flattened to one line a fact."""
    if manifest is None:
        return "<p>This folder has no manifest.json, so where and when the run was made is not known.</p>"
    lines = "".join(f"<tr><td>{escape(key)}</td><td>{escape(value)}</td></tr>" for key, value in _flat(manifest))
    head = "".join(f'<th scope="col"><button type="button">{title}</button></th>' for title in ("Fact", "Value"))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
    return f'<details><summary>manifest.json</summary><div class="scroll">{table}</div></details>'


def _flat(value: object, name: str = "") -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key in sorted(value, key=str):
            yield from _flat(value[key], f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for place, one in enumerate(value):
            yield from _flat(one, f"{name}[{place}]")
    else:
        yield name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)

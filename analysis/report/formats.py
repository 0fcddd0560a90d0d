"""Tables in files: CSV for machines with every digit, Markdown and LaTeX for readers with three."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Kind = Literal["text", "count", "number", "share"]
Row = Mapping[str, object]
NOTHING = "\u2013"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name in CSV, with the unit; its title for readers; and how its values are written for them."""

    name: str
    title: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """A finished table. A text in a column of numbers ("invalid") is for readers; CSV leaves the place empty.

    Readers get one table for each combination of values in the columns `sections`.
    """

    name: str
    title: str
    note: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    sections: tuple[str, ...] = ()


def written(value: object, kind: Kind) -> str:
    """A value for readers: thousands separators, three significant digits, a dash where there is nothing."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) or kind == "text":
        return str(value)
    assert isinstance(value, int | float), f"{value!r} is no number"
    if kind == "count":
        return f"{value:,.0f}"
    return f"{significant(value * 100)} %" if kind == "share" else significant(value)


def significant(value: float, digits: int = 3) -> str:
    """At least `digits` significant digits, thousands separated: 123,457 and 12.3 and 0.00123."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def sections(table: Table) -> Iterator[tuple[str, tuple[Column, ...], Sequence[Row]]]:
    """For readers: each part's heading, its columns and its rows, in the rows' own order."""
    shown = tuple(column for column in table.columns if column.name not in table.sections)
    by_name = {column.name: column for column in table.columns}

    def heading(row: Row) -> str:
        parts = (_heading_part(by_name[name], row[name]) for name in table.sections)
        return ", ".join(part for part in parts if part)

    for title, rows in groupby(table.rows, heading):
        yield title, shown, list(rows)


def _heading_part(column: Column, value: object) -> str:
    if value in (None, ""):
        return ""
    return f"{column.title} {written(value, column.kind)}".strip() if column.kind != "text" else str(value)


def to_csv(table: Table) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for row in table.rows:
        writer.writerow([_exact(row.get(column.name), column.kind) for column in table.columns])
    return out.getvalue()


def _exact(value: object, kind: Kind) -> str:
    if value is None or (isinstance(value, str) and kind != "text"):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def to_markdown(table: Table) -> str:
    lines = [f"# {table.title}", "", table.note, ""]
    for heading, columns, rows in sections(table):
        if heading:
            lines += [f"## {heading}", ""]
        cells = [[_in_markdown(written(row.get(c.name), c.kind)) for c in columns] for row in rows]
        titles = [_in_markdown(column.title) for column in columns]
        widths = [max(len(line[i]) for line in [titles, *cells]) for i in range(len(columns))]
        lines += [
            _markdown_row([_padded(t, w, c) for t, w, c in zip(titles, widths, columns, strict=True)]),
            _markdown_row(
                ["-" * w if c.kind == "text" else "-" * (w - 1) + ":" for w, c in zip(widths, columns, strict=True)]
            ),
            *(
                _markdown_row([_padded(t, w, c) for t, w, c in zip(line, widths, columns, strict=True)])
                for line in cells
            ),
            "",
        ]
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _padded(text: str, width: int, column: Column) -> str:
    return text.ljust(width) if column.kind == "text" else text.rjust(width)


def _in_markdown(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    NOTHING: "--",
    "µ": r"\textmu{}",
}
_LATEX |= {character: f"\\{character}" for character in "&%$#_{}"}


def to_latex(table: Table) -> str:
    """A booktabs table for each section, to be read by `\\input`."""
    parts = []
    for heading, columns, rows in sections(table):
        caption = _in_latex(f"{table.title}: {heading}" if heading else table.title)
        body = [[_in_latex(written(row.get(c.name), c.kind)) for c in columns] for row in rows]
        parts += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\begin{{tabular}}{{{''.join('l' if c.kind == 'text' else 'r' for c in columns)}}}",
            r"\toprule",
            " & ".join(_in_latex(column.title) for column in columns) + r" \\",
            r"\midrule",
            *(" & ".join(line) + r" \\" for line in body),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    return "\n".join(parts)


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text.replace("\n", " "))

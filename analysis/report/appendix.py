"""Tables in the shape of the paper's appendix: try 1..n and avg down, message or batch sizes across."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from analysis.findings import ROLES, UNITS, Findings, Found, size_text
from analysis.measures.rates import MEASURED
from analysis.report.formats import Column, Row, Table

AVERAGE = "avg"
_NOTE = "Messages/s and KB/s (1,000 bytes): each block's mean over its windows, as a try of the paper's, and their mean"
_HEAD = (Column("mode", "Mode"), Column("role", "Role"), Column("metric", "Unit"), Column("try", "Try"))


def performance(found: Findings, architecture: str) -> Table:
    """One architecture, by message size."""
    lines, sizes = _lines(found, "message_size", lambda row: row["architecture"] == architecture)
    return Table(
        name=f"{architecture}_performance".replace("-", "_"),
        title=f"{architecture}: performance by message size",
        note=f"{_NOTE}.",
        columns=(
            Column("others", "Other axes"),
            Column("batch_size", "batch size", "count"),
            *_HEAD,
            *(Column(str(size), size_text(size), "number") for size in sizes),
        ),
        rows=lines,
        sections=("others", "batch_size", "mode", "role"),
    )


def varying_batch_size(found: Findings) -> Table:
    """Every architecture, by batch size."""
    lines, batch_sizes = _lines(found, "batch_size", lambda row: True)
    return Table(
        name="varying_batch_size",
        title="Performance by batch size",
        note=f"{_NOTE}, by messages a request.",
        columns=(
            Column("architecture", "Architecture"),
            Column("others", "Other axes"),
            Column("message_size", "bytes", "count"),
            *_HEAD,
            *(Column(str(batch), f"batch {batch}", "number") for batch in batch_sizes),
        ),
        rows=lines if len(batch_sizes) > 1 else (),
        sections=("architecture", "others", "message_size", "mode", "role"),
    )


def _lines(found: Findings, axis: str, wanted: Callable[[Found], bool]) -> tuple[tuple[Row, ...], list[int]]:
    """The table's rows and the values across, for the settings that sweep the axis (for all, if none does)."""
    held = "batch_size" if axis == "message_size" else "message_size"
    values = [cell for cell in _values(found) if wanted(cell)]
    along: dict[tuple[Any, ...], set[int]] = {}
    for cell in values:
        along.setdefault((cell["others"], cell[held]), set()).add(cell[axis])
    swept = {setting for setting, found_values in along.items() if len(found_values) > 1} or set(along)
    lines: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ("architecture", "others", held, "mode", "role", "metric", "try")
    for cell in values:
        if (cell["others"], cell[held]) in swept:
            key = tuple(cell[name] for name in names)
            line = lines.setdefault(key, {name: cell[name] for name in names} | {"rank": cell["architecture_rank"]})
            line[str(cell[axis])] = cell["value"]
    across = {value for setting in swept for value in along[setting]}
    return tuple(sorted(lines.values(), key=lambda line: _place(line, held))), sorted(across)


def _values(found: Findings) -> Iterable[dict[str, Any]]:
    """Every number of the tables: a try's rate (its verdict, if it has none), or an average."""
    for row in found.trials:
        if row["kind"] == MEASURED:
            for metric, unit in UNITS.items():
                value = row[metric] if row["verdict"] == "valid" else row["verdict"]
                yield {**row, "metric": unit, "try": str(row["try"]), "value": value}
    for row in found.cells:
        if row["metric"] in UNITS:
            yield {**row, "metric": UNITS[row["metric"]], "try": AVERAGE, "value": row["mean"]}


def _place(line: dict[str, Any], held: str) -> tuple[Any, ...]:
    metric = list(UNITS.values()).index(line["metric"])
    number = float("inf") if line["try"] == AVERAGE else int(line["try"])
    return (line["rank"], line["others"], line[held], line["mode"], ROLES.index(line["role"]), metric, number)

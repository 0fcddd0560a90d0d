"""What the report's tables have in common: the columns that name a cell, and the order of the architectures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from analysis.findings import Found
from analysis.report.formats import Column, Table

ARCHITECTURE, AGAINST = Column("architecture", "Architecture"), Column("against", "Against")
OTHERS = Column("others", "Other axes")
SIZE, BATCH = Column("message_size", "Bytes", "count"), Column("batch_size", "Batch", "count")
MODE, ROLE, WINDOW = Column("mode", "Mode"), Column("role", "Role"), Column("window", "Window")
BLOCK, BLOCKS = Column("try", "Block", "count"), Column("n", "Blocks", "count")
CELL = (OTHERS, SIZE, BATCH, MODE)
RATIO = (Column("ratio", "Ratio", "number"), Column("low", "from", "number"), Column("high", "to", "number"))


def by_architecture(rows: Iterable[Found]) -> tuple[Found, ...]:
    return tuple(sorted(rows, key=lambda row: (row["architecture_rank"], row["architecture"])))


def by_pair(rows: Iterable[Found]) -> tuple[Found, ...]:
    return tuple(sorted(rows, key=lambda row: (row["against_rank"], row["architecture_rank"])))


def without_empty_axes(table: Table) -> Table:
    """The table without the column of other axes, where the run has none."""
    if any(row.get(OTHERS.name) for row in table.rows):
        return table
    return replace(
        table,
        columns=tuple(column for column in table.columns if column.name != OTHERS.name),
        sections=tuple(name for name in table.sections if name != OTHERS.name),
    )

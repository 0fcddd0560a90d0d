"""The command that measures something on the page again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from analysis.findings import Cell, Findings, cell_of, size_text


def again(manifest: Mapping[str, Any] | None, only: Iterable[str] = ()) -> str:
    """`brokerlab run` with this run's profile, and no more of it than is asked for."""
    profile = str((manifest or {}).get("profile") or "PROFILE")
    parts = [shlex.quote(part) for part in only]
    return " ".join(["brokerlab run --profile", shlex.quote(profile), *(["--only", *parts] if parts else [])])


def only(cell: Cell) -> tuple[str, ...]:
    """The parts of a plan that are this cell, as `--only` takes them."""
    others, batch, size, mode = cell
    own = [f"message_size={size_text(size).replace(' ', '')}", f"batch_size={batch}", f"mode={mode}"]
    return (*own, *(part for part in str(others).split(",") if part))


def anchor(cell: Cell) -> str:
    """A name for links to a cell."""
    return "cell-" + "".join(character if character.isalnum() else "-" for character in "-".join(map(str, only(cell))))


def cells(found: Findings, manifest: Mapping[str, Any] | None) -> list[tuple[Cell, str, str]]:
    """Each cell of the run with its anchor and its command."""
    every = sorted({cell_of(row) for row in (*found.cells, *found.load)})
    return [(cell, anchor(cell), again(manifest, only(cell))) for cell in every]

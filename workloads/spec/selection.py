"""`--only key=value`: the part of a plan that the user asks for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workloads.errors import PlanError, did_you_mean
from workloads.spec.keys import AXES
from workloads.spec.settings import Architecture
from workloads.spec.sizes import format_size, parse_size

if TYPE_CHECKING:
    from workloads.spec.plan import Cell

_OF_CELLS = ("experiment", *AXES)
KEYS = ("architecture", "try", *_OF_CELLS)


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected part of a plan, in its order; none of these is empty."""

    cells: tuple[Cell, ...]
    architectures: tuple[Architecture, ...]
    tries: tuple[int, ...]


def select(only: Sequence[str], cells: Sequence[Cell], architectures: Sequence[Architecture], tries: int) -> Selection:
    """Values of one key are alternatives, keys narrow each other; raises PlanError for what no trial has."""
    wanted: dict[str, set[str]] = {}
    for text in only:
        key, value = _parsed(text)
        known = _known(key, cells, architectures, tries)
        if value not in known:
            raise PlanError(f"--only {text}: no trial has that {key}; {did_you_mean(value, known)}")
        wanted.setdefault(key, set()).add(value)
    kept = tuple(cell for cell in cells if all(_texts(key, cell) & wanted[key] for key in wanted if key in _OF_CELLS))
    if not kept:
        raise PlanError(f"no cell fits all of: {', '.join(only)}")
    return Selection(
        cells=kept,
        architectures=tuple(each for each in architectures if each.name in wanted.get("architecture", {each.name})),
        tries=tuple(each for each in range(1, tries + 1) if str(each) in wanted.get("try", {str(each)})),
    )


def _parsed(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not value:
        raise PlanError(f"--only {text}: must be key=value, such as architecture=dsbs or message_size=8B")
    if key not in KEYS:
        raise PlanError(f"--only {text}: unknown key {key!r}; {did_you_mean(key, KEYS)}")
    return key, _with_unit(value) if key == "message_size" else value


def _with_unit(text: str) -> str:
    """The one spelling of a size; bytes without a unit too, as the ids of cells have them."""
    try:
        return format_size(int(text) if text.isascii() and text.isdecimal() else parse_size(text))
    except ValueError as error:
        raise PlanError(f"--only message_size={text}: {error}") from error


def _known(key: str, cells: Sequence[Cell], architectures: Sequence[Architecture], tries: int) -> Collection[str]:
    """The values of a key that some trial has, in the plan's order."""
    if key == "architecture":
        return [each.name for each in architectures]
    if key == "try":
        return [str(each) for each in range(1, tries + 1)]
    return list(dict.fromkeys(text for cell in cells for text in sorted(_texts(key, cell))))


def _texts(key: str, cell: Cell) -> set[str]:
    if key == "experiment":
        return set(cell.experiments)
    return {format_size(cell.message_size) if key == "message_size" else cell.as_axes()[key]}

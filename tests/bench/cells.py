"""What is measured: message sizes and messages a request, each produced, consumed, and both at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final, Literal

from workloads.errors import UserError, did_you_mean
from workloads.spec.sizes import format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

Mode = Literal["produce", "consume", "both"]
MODES: Final[tuple[Mode, ...]] = ("produce", "consume", "both")
SIZES: Final = (8, 32, 1024, 16 * 1024, 128 * 1024)
BATCHES: Final = (1, 20, 50, 1000)
# A batch of records may have so many bytes at a broker; 128 KB x 1000 would be 131 MB in one request.
REQUEST_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cell:
    message_bytes: int
    batch_messages: int

    @property
    def name(self) -> str:
        return f"{format_size(self.message_bytes)}x{self.batch_messages}"


CELLS: Final = tuple(Cell(size, batch) for size, batch in product(SIZES, BATCHES) if size * batch <= REQUEST_BYTES_MAX)


def chosen(names: Sequence[str]) -> tuple[Cell, ...]:
    """The cells of those names, all where none is given. Raises `UserError` for a name that is none's."""
    known = {cell.name: cell for cell in CELLS}
    for name in names:
        if name not in known:
            raise UserError(f"no cell {name!r}; {did_you_mean(name, known)}")
    return tuple(known[name] for name in names) or CELLS

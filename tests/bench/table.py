"""From records to a table: medians, spreads, ratios. Pure."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from tests.bench.cells import MODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.cells import Cell, Mode
    from tests.bench.run import Record

OURS: Final = "brokerlab"


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the least and the greatest of what it is the median of."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(median(values), min(values), max(values))

    @property
    def percent(self) -> float:
        """Half the range, of the median."""
        return 50 * (self.greatest - self.least) / self.median


@dataclass(frozen=True, slots=True)
class Side:
    """One target in one cell and mode. CPU is in microseconds a message, of all brokers or all clients together."""

    rate: Spread
    broker_cpu_us: float
    client_cpu_us: float
    seconds_least: float
    produced_each: float | None
    fetched_each: float | None


@dataclass(frozen=True, slots=True)
class Row:
    cell: Cell
    mode: Mode
    ours: Side
    peer: Side | None
    ratio: Spread | None  # ours to the peer's, within each repetition


def rows(records: Sequence[Record]) -> list[Row]:
    """A row for each cell and mode that was measured, in the order of the records' cells."""
    cells = list(dict.fromkeys(record.cell for record in records))
    found = [_row(cell, mode, records) for cell in cells for mode in MODES]
    return [row for row in found if row is not None]


def _row(cell: Cell, mode: Mode, records: Sequence[Record]) -> Row | None:
    found = [record for record in records if record.cell == cell and record.window.mode == mode]
    ours = [record for record in found if record.target == OURS]
    theirs = {record.repetition: record for record in found if record.target != OURS}
    if not ours:
        return None
    pairs = [(mine, theirs[mine.repetition]) for mine in ours if mine.repetition in theirs]
    if not pairs:
        return Row(cell, mode, _side(ours), None, None)
    ratios = Spread.of([mine.window.rate / its.window.rate for mine, its in pairs])
    return Row(cell, mode, _side(ours), _side(list(theirs.values())), ratios)


def _side(records: Sequence[Record]) -> Side:
    windows = [record.window for record in records]
    return Side(
        rate=Spread.of([window.rate for window in windows]),
        broker_cpu_us=median(1e6 * window.broker_cpu_s / window.messages for window in windows),
        client_cpu_us=median(1e6 * window.client_cpu_s / window.messages for window in windows),
        seconds_least=min(window.seconds for window in windows),
        produced_each=_median([window.produced_each for window in windows]),
        fetched_each=_median([window.fetched_each for window in windows]),
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def markdown(found: Sequence[Row]) -> str:
    with_peer = any(row.peer is not None for row in found)
    header = ["cell", "mode", "messages/s", "±", "broker CPU", "client CPU", "broker/client", "a produce", "a fetch"]
    if with_peer:
        header += ["peer messages/s", "±", "peer broker CPU", "ratio", "least-greatest"]
    lines = [header, ["---", "---", *(["---:"] * (len(header) - 2))]]
    lines += [_shown(row, with_peer=with_peer) for row in found]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _shown(row: Row, *, with_peer: bool) -> list[str]:
    ours = row.ours
    shown = [
        row.cell.name,
        row.mode,
        *_rate(ours.rate),
        f"{ours.broker_cpu_us:.3g} us",
        f"{ours.client_cpu_us:.3g} us",
        f"{ours.broker_cpu_us / ours.client_cpu_us:.2f}",
        _number(ours.produced_each),
        _number(ours.fetched_each),
    ]
    if not with_peer:
        return shown
    if row.peer is None or row.ratio is None:
        return shown + [""] * 5
    ratio = [f"{row.ratio.median:.2f}", f"{row.ratio.least:.2f}-{row.ratio.greatest:.2f}"]
    return [*shown, *_rate(row.peer.rate), f"{row.peer.broker_cpu_us:.3g} us", *ratio]


def _rate(rate: Spread) -> tuple[str, str]:
    return f"{float(f'{rate.median:.3g}'):,.0f}", f"{rate.percent:.0f} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def as_csv(records: Sequence[Record]) -> str:
    """Every window on a line of its own, unrounded."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow([
        "target", "message_bytes", "batch_messages", "mode", "repetition", "messages", "seconds", "rate",
        "broker_cpu_s", "client_cpu_s", "produced_each", "fetched_each",
    ])  # fmt: skip
    for record in records:
        window, cell = record.window, record.cell
        lines.writerow([
            record.target, cell.message_bytes, cell.batch_messages, window.mode, record.repetition, window.messages,
            window.seconds, window.rate, window.broker_cpu_s, window.client_cpu_s, window.produced_each,
            window.fetched_each,
        ])  # fmt: skip
    return out.getvalue()

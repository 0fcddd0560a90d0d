"""The benchmark's arithmetic."""

from __future__ import annotations

import pytest

from tests.bench.cells import CELLS, REQUEST_BYTES_MAX, Cell, Mode, chosen
from tests.bench.run import Record, Sizes
from tests.bench.table import Spread, as_csv, markdown, rows
from tests.bench.trial import Window
from workloads.errors import UserError

CELL = Cell(32, 20)


def window(rate: float, *, mode: Mode = "produce", seconds: float = 2.0, cpu_s: float = 1.0) -> Window:
    return Window(mode, int(rate * seconds), seconds, cpu_s, 2 * cpu_s, produced_each=20.0, fetched_each=None)


def records(target: str, rates: list[float]) -> list[Record]:
    modes: tuple[Mode, ...] = ("produce", "consume", "both")
    return [
        Record(target, CELL, number, window(rate, mode=mode)) for number, rate in enumerate(rates) for mode in modes
    ]


def test_a_spread_is_the_median_and_half_the_range() -> None:
    assert Spread.of([90, 130, 100]) == Spread(100, 90, 130)
    assert Spread.of([90, 130, 100]).percent == 20


def test_a_row_has_the_median_rate_and_the_cost_of_a_message() -> None:
    (row, *others) = rows(records("brokerlab", [100, 400, 200]))
    assert [row.mode, *(other.mode for other in others)] == ["produce", "consume", "both"]
    assert row.ours.rate.median == 200
    assert row.ours.broker_cpu_us == pytest.approx(1e6 / 400)
    assert row.ours.client_cpu_us == pytest.approx(2e6 / 400)
    assert row.peer is None
    assert row.ratio is None


def test_ratios_are_taken_within_a_repetition() -> None:
    """Both ran twice as fast in the second, which is the machine's doing and leaves the ratio as it was."""
    row = rows([*records("brokerlab", [100, 200]), *records("peer", [50, 100])])[0]
    assert row.ratio == Spread(2, 2, 2)


def test_the_table_has_the_peers_columns_only_beside_a_peer() -> None:
    alone, beside = rows(records("brokerlab", [100])), rows([*records("brokerlab", [100]), *records("peer", [50])])
    assert "ratio" not in markdown(alone)
    assert "| 2.00 | 2.00-2.00 |" in markdown(beside)
    assert len({line.count("|") for line in markdown(beside).splitlines()}) == 1


def test_the_csv_has_a_line_for_each_window() -> None:
    lines = as_csv(records("brokerlab", [100, 200])).splitlines()
    assert len(lines) == 1 + 6
    assert lines[1] == "brokerlab,32,20,produce,0,200,2.0,100.0,1.0,2.0,20.0,"


def test_no_cell_has_requests_that_a_broker_refuses() -> None:
    assert all(cell.message_bytes * cell.batch_messages <= REQUEST_BYTES_MAX for cell in CELLS)
    assert Cell(16 * 1024, 1000) in CELLS


def test_cells_are_chosen_by_name_and_a_wrong_name_is_refused() -> None:
    assert chosen(["32Bx20"]) == (CELL,)
    assert chosen([]) == CELLS
    with pytest.raises(UserError, match="no cell"):
        chosen(["32Bx21"])


def test_the_first_trial_of_a_cell_goes_by_time_and_the_next_by_its_rates() -> None:
    sizes = Sizes(seconds=1.0)
    assert sizes.length("brokerlab", CELL, "split").duration_s is not None
    assert not sizes.learn("brokerlab", CELL, "split", [window(1000), window(6000, mode="consume")])
    messages = sizes.length("brokerlab", CELL, "split").messages
    assert messages == 7500  # the faster window's rate, a second, a quarter to spare, full requests everywhere


def test_windows_that_came_out_too_short_make_the_next_longer() -> None:
    sizes = Sizes(seconds=1.0)
    sizes.learn("brokerlab", CELL, "both", [window(1000)])
    assert not sizes.learn("brokerlab", CELL, "both", [window(4000, seconds=0.3)])
    assert sizes.length("brokerlab", CELL, "both").messages == 5040
    assert sizes.learn("brokerlab", CELL, "both", [window(4000, seconds=1.2)])


def test_a_trial_that_failed_leaves_the_others_in_the_table() -> None:
    """Repetition 1 of the peer is missing, and of ours one mode everywhere."""
    ours = [record for record in records("brokerlab", [100, 200]) if record.window.mode != "both"]
    found = rows([*ours, *records("peer", [50])])
    assert [row.mode for row in found] == ["produce", "consume"]
    assert [row.ratio for row in found] == [Spread.of([2.0])] * 2

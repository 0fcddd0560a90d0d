"""What clients write down, and the values that cross between them and the runner."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from tests.unit.workloads.clients.jobs import consume_job, produce_job
from workloads.clients.client_files import (
    NotWritten,
    read_ids,
    read_receipts,
    read_requests,
    read_sends,
    summary_of_consumed,
    summary_of_produced,
    write_consumed,
    write_produced,
)
from workloads.clients.drivers.api import COUNTER_BITS, OK, Consumed, Produced, RequestRow
from workloads.results import request_schema


def sent(partition: int, first: int, count: int, at_ns: int, status: str = OK) -> tuple[RequestRow, range]:
    row = RequestRow(partition, 1, count, count * 16, at_ns, at_ns + 5, status)
    return row, range(first, first + count)


def produced(*requests: tuple[RequestRow, range]) -> Produced:
    found = Produced()
    for row, counters in requests:
        found.rows.append(row)
        found.sent += row.messages
        found.note(row.partition, counters, row.status)
    return found


def test_a_producers_summary_counts_what_was_sent_acknowledged_and_refused() -> None:
    found = produced(sent(0, 0, 4, 100), sent(1, 4, 3, 200, "NOT_LEADER"), sent(0, 7, 2, 300), sent(1, 9, 1, 400, "X"))
    assert summary_of_produced(found) == {
        "sent": 10, "acknowledged": 6, "failed": {"NOT_LEADER": 3, "X": 1}, "window_s": pytest.approx(205e-9),
    }  # fmt: skip


def test_a_window_goes_from_the_first_send_to_the_last_answer_that_carried_something() -> None:
    empty = RequestRow(0, 1, 0, 0, 50, 60, OK)
    late = RequestRow(0, 1, 0, 0, 900, 999, OK)
    full = RequestRow(0, 1, 5, 80, 100, 200, OK)
    assert summary_of_consumed(Consumed([empty, full, late]))["window_s"] == pytest.approx(150e-9)
    assert summary_of_consumed(Consumed([empty]))["window_s"] == 0
    assert summary_of_consumed(Consumed())["window_s"] == 0


def test_acknowledged_ids_name_producer_and_counter(tmp_path: Path) -> None:
    out = tmp_path / "producer-2"
    write_produced(produce_job(out), produced(sent(0, 0, 2, 1), sent(1, 2, 2, 2, "NOT_LEADER"), sent(0, 4, 1, 3)))
    ids = read_ids(out)
    assert {partition: found.tolist() for partition, found in ids.items()} == {
        0: [(2 << COUNTER_BITS) + counter for counter in (0, 1, 4)]
    }


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=20))
def test_acknowledged_ids_are_those_of_each_block_in_their_order(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[tuple[int, int]]
) -> None:
    out = tmp_path_factory.mktemp("ids") / "producer-2"
    counters = [range(first, first + count) for first, count in blocks]
    write_produced(produce_job(out), Produced(acknowledged={1: counters}))
    assert read_ids(out)[1].tolist() == [(2 << COUNTER_BITS) + counter for block in counters for counter in block]


def test_a_consumers_summary_says_whether_it_reached_its_targets() -> None:
    assert summary_of_consumed(Consumed(wrong_payloads=1, commits=2, dry=True)) == {
        "consumed": 0, "wrong_payloads": 1, "commits": 2, "dry": True, "window_s": 0.0,
    }  # fmt: skip


def test_consumed_ids_come_back_in_their_order(tmp_path: Path) -> None:
    out = tmp_path / "consumer-0"
    raw = bytearray((7).to_bytes(8, "big") + (3).to_bytes(8, "big"))
    write_consumed(consume_job(out), Consumed(ids={0: raw, 1: bytearray()}))
    assert {partition: found.tolist() for partition, found in read_ids(out).items()} == {0: [7, 3], 1: []}


def test_requests_of_all_clients_are_joined_in_the_schema_of_the_raw_records(tmp_path: Path) -> None:
    outs = [tmp_path / "producer-2", tmp_path / "consumer-0"]
    write_produced(produce_job(outs[0]), produced(sent(0, 0, 2, 1)))
    slice_row = RequestRow(-1, 3, 6, 96, 10, 20, OK, {5: 2, 1: 1}, window_number=4)
    write_consumed(consume_job(outs[1]), Consumed([slice_row]))
    table = read_requests(outs, "cell/static/1")
    assert table.schema.equals(request_schema())
    assert table.column("trial_id").to_pylist() == ["cell/static/1"] * 2
    assert table.column("role").to_pylist() == ["producer", "consumer"]
    assert table.column("window_number").to_pylist() == [0, 4]
    assert table.column("latency_index").to_pylist() == [None, [1, 5]]
    assert table.column("latency_count").to_pylist() == [None, [1, 2]]


def test_clients_that_did_nothing_leave_empty_tables(tmp_path: Path) -> None:
    out = tmp_path / "consumer-0"
    write_consumed(consume_job(out), Consumed())
    assert read_requests([out], "x").num_rows == 0
    assert read_ids(out) == {}


def test_a_disk_that_refuses_is_told_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(feather, "write_feather", full)
    with pytest.raises(NotWritten, match=f"cannot be written to {tmp_path}: No space left on device"):
        write_produced(produce_job(tmp_path / "producer-2"), Produced())


def test_sends_and_receipts_come_back_and_do_not_mix_with_the_ids(tmp_path: Path) -> None:
    out = tmp_path / "producer-2"
    write_produced(produce_job(out), Produced(sends=[(4, 30), (0, 10)]))
    assert read_sends(out).tolist() == [[0, 10], [4, 30]]
    assert read_ids(out) == {}
    out = tmp_path / "consumer-0"
    seen = Consumed(ids={0: bytearray(24)})
    seen.note_receipt(0, 1, 50, 1)
    seen.note_receipt(0, 2, 60, 2)
    write_consumed(consume_job(out), seen)
    assert {partition: found.tolist() for partition, found in read_receipts(out).items()} == {
        0: [[1, 50, 1], [2, 60, 2]]
    }
    assert read_ids(out).keys() == {0}


def test_a_client_writes_without_loading_pandas(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from workloads.clients import client, client_files
sys.meta_path.insert(0, client.WithoutPandas)
client.load_all(["kafka"])
from workloads.clients.drivers.api import Consumed
from tests.unit.workloads.clients.jobs import consume_job
client_files.write_consumed(consume_job(Path(sys.argv[1])), Consumed())
print("pandas" in sys.modules)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "consumer-0")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
    assert read_requests([tmp_path / "consumer-0"], "x").num_rows == 0

"""The auditor's reader: the ids of a log as they lie on the disk, or what is damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.log.config import LogConfig
from brokers.log.log import Log
from brokers.log.segment import OpenSegments
from brokers.readback import Damaged, ids_in
from brokers.wire.batch import RecordToSend, encode_batch, parse_header


def stored(folder: Path, batches: Sequence[Sequence[bytes | None]], segment_bytes: int = 200) -> None:
    """A log with these values, by default in segments so small that there are several."""
    log = Log.open(folder, LogConfig(segment_bytes=segment_bytes), now_ms=0, open_segments=OpenSegments())
    for values in batches:
        batch = encode_batch([RecordToSend(value) for value in values])
        log.append([(batch, parse_header(batch))], 0)
    log.close()


def identity(number: int) -> bytes:
    return number.to_bytes(8, "big")


def test_ids_come_in_the_order_of_the_log_across_segments(tmp_path: Path) -> None:
    stored(tmp_path, [[identity(n * 3 + i) + b"padding" for i in range(3)] for n in range(10)])
    assert len(list(tmp_path.glob("*.log"))) > 1
    assert ids_in(tmp_path).tolist() == list(range(30))


def test_a_value_without_an_id_does_not_shift_those_behind_it(tmp_path: Path) -> None:
    stored(tmp_path, [[identity(1), None, b"", b"abc", identity(2)]])
    none, short = b"\xff" * 8, b"abc" + b"\xff" * 5
    assert ids_in(tmp_path).tolist() == [1, *(int.from_bytes(each, "big") for each in (none, none, short)), 2]


def test_an_empty_log_holds_nothing(tmp_path: Path) -> None:
    stored(tmp_path, [])
    assert ids_in(tmp_path).tolist() == []


@pytest.mark.parametrize("at", [70, 30, 22])
def test_a_flipped_byte_is_damage_with_its_place(tmp_path: Path, at: int) -> None:
    stored(tmp_path, [[identity(1)]])
    (segment,) = tmp_path.glob("*.log")
    content = bytearray(segment.read_bytes())
    content[at] ^= 1
    segment.write_bytes(content)
    with pytest.raises(Damaged, match=rf"{segment.name} at byte 0: "):
        ids_in(tmp_path)


@pytest.mark.parametrize("cut", [1, 60, 61])
def test_a_batch_that_is_cut_short_is_damage(tmp_path: Path, cut: int) -> None:
    stored(tmp_path, [[identity(1)], [identity(2)]])
    (segment,) = tmp_path.glob("*.log")
    size = segment.stat().st_size // 2
    segment.write_bytes(segment.read_bytes()[: size + cut])
    with pytest.raises(Damaged, match=f"at byte {size}"):
        ids_in(tmp_path)


@pytest.mark.parametrize("records", [1, 20, 63, 64, 65, 130, 8_193])
@pytest.mark.parametrize("payload_bytes", [8, 50, 200])
def test_batches_that_are_alike_are_read_as_one_by_one(tmp_path: Path, records: int, payload_bytes: int) -> None:
    numbers = iter(range(1_000_000))
    batches = [
        [identity(next(numbers)).ljust(payload_bytes, b"x") for _ in range(size)]
        for size in [records] * 5 + [3] + [records] * 40
    ]
    stored(tmp_path, batches, segment_bytes=4_000_000)
    assert ids_in(tmp_path).tolist() == list(range(sum(map(len, batches))))


@settings(max_examples=150)
@given(data=st.data())
def test_whatever_lies_in_a_log_is_read(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    values = st.one_of(st.none(), st.binary(max_size=12), st.binary(min_size=8, max_size=8))
    records = st.builds(
        RecordToSend,
        values,
        key=st.one_of(st.none(), st.binary(max_size=2)),
        timestamp=st.integers(1_000, 1_100),
        headers=st.sampled_from([(), (), (("h", b"v"),)]),
    )
    batch = st.lists(records, min_size=1, max_size=4)
    drawn = data.draw(st.lists(st.tuples(batch, st.integers(1, 20)), max_size=6))
    written = [records for records, times in drawn for _ in range(times)]
    folder = tmp_path_factory.mktemp("log")
    log = Log.open(folder, LogConfig(segment_bytes=500), now_ms=0, open_segments=OpenSegments())
    for one in written:
        encoded = encode_batch(one)
        log.append([(encoded, parse_header(encoded))], 0)
    log.close()
    ids = [(record.value or b"")[:8].ljust(8, b"\xff") for one in written for record in one]
    assert ids_in(folder).tolist() == [int.from_bytes(each, "big") for each in ids]


def test_damage_behind_batches_that_are_alike_is_named_by_its_own_place(tmp_path: Path) -> None:
    stored(tmp_path, [[identity(number)] for number in range(9)], segment_bytes=1_000_000)
    (segment,) = tmp_path.glob("*.log")
    content = bytearray(segment.read_bytes())
    size = len(content) // 9
    content[size * 5 + 70] ^= 1
    segment.write_bytes(content)
    with pytest.raises(Damaged, match=f"at byte {size * 5}: "):
        ids_in(tmp_path)


def answers(*jobs: object) -> list[dict[str, object]]:
    """What the command says to its jobs."""
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    command = [sys.executable, "-m", "brokers.readback"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_command_writes_what_it_read_by_partition(tmp_path: Path) -> None:
    stored(tmp_path / "0", [[identity(5)]])
    stored(tmp_path / "1", [[identity(7), identity(6)]])
    out = tmp_path / "out.npz"
    job = {"out": str(out), "partitions": {"0": str(tmp_path / "0"), "1": str(tmp_path / "1")}}
    assert answers(job) == [{"read": 3}]
    with np.load(out) as found:
        assert {name: found[name].tolist() for name in found.files} == {"0": [5], "1": [7, 6]}


def test_the_command_says_what_is_damaged_writes_nothing_and_goes_on(tmp_path: Path) -> None:
    stored(tmp_path / "0", [[identity(5)]])
    stored(tmp_path / "1", [[identity(5)]])
    (segment,) = (tmp_path / "0").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1])
    jobs = [{"out": str(tmp_path / f"{name}.npz"), "partitions": {"0": str(tmp_path / name)}} for name in "01"]
    refused, read = answers(*jobs)
    assert f"{segment} at byte 0" in str(refused["failed"])
    assert read == {"read": 1}
    assert [(tmp_path / f"{name}.npz").exists() for name in "01"] == [False, True]

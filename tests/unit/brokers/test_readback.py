"""The auditor's reader: the ids of a log as they lie on the disk, or what is damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from brokers.log.config import LogConfig
from brokers.log.log import Log
from brokers.log.segment import OpenSegments
from brokers.readback import Damaged, ids_in
from brokers.wire.batch import RecordToSend, encode_batch, parse_header


def stored(folder: Path, batches: list[list[bytes | None]]) -> None:
    """A log with these values, in segments so small that there are several."""
    log = Log.open(folder, LogConfig(segment_bytes=200), now_ms=0, open_segments=OpenSegments())
    for values in batches:
        batch = encode_batch([RecordToSend(value) for value in values])
        log.append([(batch, parse_header(batch))], 0)
    log.close()


def identity(number: int) -> bytes:
    return number.to_bytes(8, "big")


def test_ids_come_in_the_order_of_the_log_across_segments(tmp_path: Path) -> None:
    stored(tmp_path, [[identity(n * 3 + i) + b"padding" for i in range(3)] for n in range(10)])
    assert len(list(tmp_path.glob("*.log"))) > 1
    assert b"".join(ids_in(tmp_path)) == b"".join(map(identity, range(30)))


def test_a_value_without_an_id_does_not_shift_those_behind_it(tmp_path: Path) -> None:
    stored(tmp_path, [[identity(1), None, b"", b"abc", identity(2)]])
    found = list(ids_in(tmp_path))
    assert found == [identity(1), b"\xff" * 8, b"\xff" * 8, b"abc" + b"\xff" * 5, identity(2)]


def test_an_empty_log_holds_nothing(tmp_path: Path) -> None:
    stored(tmp_path, [])
    assert list(ids_in(tmp_path)) == []


@pytest.mark.parametrize("at", [70, 30, 22])
def test_a_flipped_byte_is_damage_with_its_place(tmp_path: Path, at: int) -> None:
    stored(tmp_path, [[identity(1)]])
    (segment,) = tmp_path.glob("*.log")
    content = bytearray(segment.read_bytes())
    content[at] ^= 1
    segment.write_bytes(content)
    with pytest.raises(Damaged, match=rf"{segment.name} at byte 0: "):
        list(ids_in(tmp_path))


@pytest.mark.parametrize("cut", [1, 60, 61])
def test_a_batch_that_is_cut_short_is_damage(tmp_path: Path, cut: int) -> None:
    stored(tmp_path, [[identity(1)], [identity(2)]])
    (segment,) = tmp_path.glob("*.log")
    size = segment.stat().st_size // 2
    segment.write_bytes(segment.read_bytes()[: size + cut])
    with pytest.raises(Damaged, match=f"at byte {size}"):
        list(ids_in(tmp_path))


def test_the_command_writes_what_it_read_by_partition(tmp_path: Path) -> None:
    stored(tmp_path / "0", [[identity(5)]])
    stored(tmp_path / "1", [[identity(7), identity(6)]])
    out = tmp_path / "out.npz"
    command = [sys.executable, "-m", "brokers.readback", "--out", str(out)]
    subprocess.run([*command, f"0={tmp_path / '0'}", f"1={tmp_path / '1'}"], check=True)
    with np.load(out) as found:
        assert {name: found[name].tolist() for name in found.files} == {"0": [5], "1": [7, 6]}


def test_the_command_says_what_is_damaged_and_writes_nothing(tmp_path: Path) -> None:
    stored(tmp_path / "0", [[identity(5)]])
    (segment,) = (tmp_path / "0").glob("*.log")
    segment.write_bytes(segment.read_bytes()[:-1])
    out = tmp_path / "out.npz"
    command = [sys.executable, "-m", "brokers.readback", "--out", str(out), f"0={tmp_path / '0'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, out.exists()) == (1, False)
    assert f"{segment} at byte 0" in done.stderr

"""Kill a process that appends under `fsync: always`, at any moment, and see that what it acknowledged is there.

`python -m tests.campaigns.log_kills --kills 1000`. One log lives through all kills of a run, or through as many as fit
into its retention, so recovery meets what earlier recoveries left. What is written at an offset follows from the offset
alone, so the checker needs no memory of what was sent. After each kill a bit of a copy is flipped in the segment that
grew last: all but the batch that it hits must be served, and that one named if it was acknowledged.
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.errors import LogUnreadable
from brokers.log.log import Batch, Log
from brokers.wire.batch import parse_header
from tests.unit.brokers.log.batches import abandon, batch, everything, offsets, opened, split

CONFIG = LogConfig(
    segment_bytes=5_000_000, index_interval_bytes=1000, fsync=FsyncPolicy.ALWAYS, retention_bytes=10_000_000
)
PRODUCER_ID = 9
KILL_DELAY_S_MAX = 0.02
READ_BYTES_MAX = 4_000_000


def made_batch(offset: int) -> Batch:
    """The batch that belongs at this offset: mostly small ones, some so large that a kill tears their write."""
    chance = random.Random(offset)
    size = 1_000_000 if chance.randrange(12) == 0 else chance.randrange(100)
    values = [chance.randbytes(size) for _ in range(chance.randrange(1, 4))]
    return batch(*values, producer=(PRODUCER_ID, 0, offset))


def append_for_ever(directory: Path) -> None:
    """The process that is killed. Each line that it prints is an acknowledgement: all before this offset is there."""
    print("started", flush=True)
    log = opened(directory, CONFIG)
    chance = random.Random()
    while True:
        offset, batches = log.end_offset, []
        for _ in range(chance.randrange(1, 5)):
            batches.append(made_batch(offset))
            offset += batches[-1][1].records_count
        log.append(batches, leader_epoch=offset // 100)
        log.syncing.flush()
        print(log.end_offset, flush=True)
        log.retain(now_ms=1000)


def kill_once(directory: Path, chance: random.Random) -> int:
    """Start the process, kill it some acknowledgements later, and return the end that it acknowledged last."""
    command = [sys.executable, "-m", "tests.campaigns.log_kills", "--append-in", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(chance.choice([1, 2, 3, 10, 30]))]
        time.sleep(chance.random() * KILL_DELAY_S_MAX)  # not to wait for anything: the moment is what is tried out
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL, "the process died by itself"
    numbers = [int(line) for line in lines if line.endswith(b"\n") and line != b"started\n"]
    return max(numbers, default=0)


def check(directory: Path, acknowledged: int) -> bool:
    """Recover twice and compare every byte; whether there was a torn tail to cut."""
    log = opened(directory, CONFIG)
    assert log.end_offset >= acknowledged, f"{acknowledged} was acknowledged, the log ends at {log.end_offset}"
    digest = _check_content(log)
    abandon(log)
    again = opened(directory, CONFIG)
    assert again.end_offset == log.end_offset
    assert not again.recovery.cuts
    assert _check_content(again) == digest, "recovering twice is not recovering once"
    abandon(again)
    return bool(log.recovery.cuts)


def check_with_a_flipped_bit(directory: Path, acknowledged: int, chance: random.Random) -> None:
    """Damage the last segment that holds anything, recover twice, and see that nothing is lost but what was hit."""
    segment = max(path for path in directory.glob("*.log") if path.stat().st_size)
    data = bytearray(segment.read_bytes())
    position = chance.randrange(len(data))
    data[position] ^= 1 << chance.randrange(8)
    segment.write_bytes(data)
    for _ in range(2):
        log = opened(directory, CONFIG)
        assert log.end_offset >= acknowledged, f"{acknowledged} was acknowledged, the log ends at {log.end_offset}"
        damaged = _damaged_ranges(log)
        assert len(damaged) <= 1, f"one flipped bit at {position} of {segment.name} costs {damaged}"
        assert all(cut.offset >= acknowledged for cut in log.recovery.cuts), f"{acknowledged}: {log.recovery.cuts}"
        abandon(log)


def _damaged_ranges(log: Log) -> list[tuple[int, int]]:
    """What cannot be read; all else must be what belongs there."""
    offset, damaged = log.start_offset, []
    while offset < log.end_offset:
        try:
            stored = split(log.reader.read(offset, READ_BYTES_MAX))
        except LogUnreadable as damage:
            damaged.append((damage.begin, damage.end))
            offset = damage.end
            continue
        for batch_bytes in stored:
            header = parse_header(batch_bytes)
            assert header.base_offset == offset
            assert batch_bytes[16:] == bytes(made_batch(offset)[0])[16:]
            offset += header.records_count
    return damaged


def _check_content(log: Log) -> bytes:
    """Every batch is the one that belongs there, and sending the last one again stores nothing."""
    digest = hashlib.sha256()
    last: Batch | None = None
    for stored in everything(log, READ_BYTES_MAX):
        header = parse_header(stored)
        last = made_batch(header.base_offset)
        assert stored[16:] == bytes(last[0])[16:], f"offset {header.base_offset} holds other bytes than were sent"
        digest.update(stored)
    if last is not None:
        assert offsets(log.append([last], leader_epoch=log.epochs.latest)) == [last[1].base_sequence]
    return digest.digest()


def campaign(kills: int, seed: int) -> str:
    """Kill so often; AssertionError at the first thing that is not as promised."""
    chance = random.Random(seed)
    directory = Path(tempfile.mkdtemp(prefix="kills-"))
    torn = acknowledged = 0
    try:
        for _ in range(kills):
            acknowledged = max(acknowledged, kill_once(directory / "log", chance))
            if acknowledged:  # a first kill may come before the first append
                shutil.copytree(directory / "log", directory / "flipped")
                check_with_a_flipped_bit(directory / "flipped", acknowledged, chance)
                shutil.rmtree(directory / "flipped")
            torn += check(directory / "log", acknowledged)
    finally:
        shutil.rmtree(directory)
    return f"{kills} kills, {acknowledged} records acknowledged and there, {torn} torn tails cut"


def main() -> int:
    """Run the campaign, or be the process that it kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--append-in", type=Path)
    arguments = parser.parse_args()
    if arguments.append_in is not None:
        append_for_ever(arguments.append_in)
    print(campaign(arguments.kills, arguments.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Damage logs while they are stopped, and see that no wrong byte is ever served and nothing breaks.

`python -m tests.campaigns.log_corruptions --count 10000` runs seeds 0 to 9999 and prints the first that fails, which
`--seed N --count 1` repeats. Each seed makes a log, stops it in order or by a crash, damages one of its files in one of
the ways of CORRUPTIONS, opens it and reads everything there is. What was synced is served, or named as damaged or
missing; a flipped bit in what a start scans costs the one batch that it hits.
"""

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from brokers.log.config import FsyncPolicy, LogConfig
from brokers.log.log import Batch, Log
from tests.unit.brokers.log.batches import NO_PRODUCER, abandon, batch, opened, readable


def flip_bit(chance: random.Random, path: Path) -> None:
    """One bit, anywhere."""
    data = bytearray(path.read_bytes())
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)


def cut_off(chance: random.Random, path: Path) -> None:
    """The end is gone, or all of it."""
    data = path.read_bytes()
    path.write_bytes(data[: chance.choice([0, chance.randrange(len(data) + 1)])])


def zero_block(chance: random.Random, path: Path) -> None:
    """A stretch of zeros, as a lost page leaves one."""
    data = bytearray(path.read_bytes())
    begin = chance.randrange(len(data) + 1)
    end = min(begin + chance.choice([16, 64, 512]), len(data))
    data[begin:end] = bytes(end - begin)
    path.write_bytes(data)


def swap_blocks(chance: random.Random, path: Path) -> None:
    """Two stretches of the file change places."""
    data = bytearray(path.read_bytes())
    size = chance.choice([8, 64, 200])
    if len(data) >= 2 * size:
        one = chance.randrange(len(data) - 2 * size + 1)
        other = chance.randrange(one + size, len(data) - size + 1)
        data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]
        path.write_bytes(data)


def add_garbage(chance: random.Random, path: Path) -> None:
    """Something was written behind the end."""
    path.write_bytes(path.read_bytes() + chance.randbytes(chance.randrange(1, 300)))


def swap_files(chance: random.Random, path: Path) -> None:
    """Another file of the same kind and this one change places."""
    other = chance.choice(sorted(path.parent.glob(f"*{path.suffix}")))
    mine, others = path.read_bytes(), other.read_bytes()
    path.write_bytes(others)
    other.write_bytes(mine)


def delete(_: random.Random, path: Path) -> None:
    """The file is gone."""
    path.unlink()


Corruption = Callable[[random.Random, Path], None]
CORRUPTIONS: tuple[Corruption, ...] = (
    flip_bit, cut_off, zero_block, swap_blocks, add_garbage, swap_files, delete,
)  # fmt: skip
KINDS = ("log", "log", "log", "index", "index", "producers", "checkpoint", "synced")


Sent = tuple[int, Batch] | None
"""The last batch of the idempotent producer and its offset."""


def made_log(chance: random.Random, directory: Path) -> tuple[Log, dict[int, bytes], Sent]:
    """A log of a few segments, and what is in it by base offset."""
    config = LogConfig(
        segment_bytes=chance.choice([400, 1500]),
        index_interval_bytes=chance.choice([50, 200]),
        fsync=chance.choice(list(FsyncPolicy)),
    )
    log = opened(directory, config)
    stored: dict[int, memoryview | bytearray] = {}
    epoch = sequence = 0
    sent: Sent = None
    for _ in range(chance.randrange(1, 30)):
        epoch += chance.randrange(8) == 0
        records = chance.randrange(1, 4)
        idempotent = chance.randrange(3) == 0
        values = [chance.randbytes(chance.randrange(60)) for _ in range(records)]
        data, header = batch(*values, producer=(5, 0, sequence) if idempotent else NO_PRODUCER)
        if idempotent:
            sequence += records
            sent = log.end_offset, (data, header)
        stored[log.end_offset] = data
        log.append([(data, header)], epoch)
        if chance.randrange(10) == 0:
            log.syncing.flush()
    return log, {offset: bytes(data) for offset, data in stored.items()}, sent


def run(seed: int) -> str:
    """One case; AssertionError or whatever the log raised if it fails. Returns what was done, for the statistics."""
    chance = random.Random(seed)
    directory = Path(tempfile.mkdtemp(prefix="corruption-"))
    try:
        return _run(chance, directory / "log")
    finally:
        shutil.rmtree(directory)


def _run(chance: random.Random, directory: Path) -> str:
    log, stored, sent = made_log(chance, directory)
    in_order = chance.randrange(3) != 0
    if in_order:
        log.close()
    else:
        abandon(log)
    promised, scanned_from = log.syncing.synced_offset, log.syncing.recovered_offset
    before = {file: file.read_bytes() for file in directory.glob("*.log")}
    path, corrupt = _damage(chance, directory)
    touched = {file for file, data in before.items() if not file.exists() or file.read_bytes() != data}
    log = opened(directory, log._config)
    found, damaged = readable(log)
    assert all(stored.get(offset) == data for offset, data in found.items()), "a wrong byte was served"
    if in_order and path.suffix:
        _check_nothing_else_is_lost(found, stored, touched, before)
    if path.suffix or corrupt is not swap_files:  # which takes two: what was synced, and the note of it
        _check_what_was_synced(log, found, damaged, stored, promised)
        assert corrupt is add_garbage or all(cut.offset >= promised for cut in log.recovery.cuts)
    if corrupt is flip_bit and path.suffix == ".log" and not in_order and int(path.stem) >= scanned_from:
        lost = stored.keys() - found.keys()
        assert len(lost) <= 1, f"one flipped bit costs the batches at {sorted(lost)}"
    _check_it_can_be_used(log, found, damaged, sent)
    return f"{corrupt.__name__} of {path.suffix or path.name}"


def _damage(chance: random.Random, directory: Path) -> tuple[Path, Corruption]:
    """Damage one file, in whatever way really changes something."""
    before = {file: file.read_bytes() for file in directory.iterdir()}
    while True:
        files = sorted(directory.glob(f"*{chance.choice(KINDS)}"))
        if files:
            path, corrupt = chance.choice(files), chance.choice(CORRUPTIONS)
            corrupt(chance, path)
            if not path.exists() or path.read_bytes() != before[path]:
                return path, corrupt


def _check_nothing_else_is_lost(
    found: dict[int, bytes], stored: dict[int, bytes], touched: set[Path], before: dict[Path, bytes]
) -> None:
    """After a stop in order, damage in one file costs nothing that lies in another."""
    bases = sorted(int(file.stem) for file in before)
    lost_segments = {int(file.stem) for file in touched}
    for offset in stored:
        segment = max(base for base in bases if base <= offset)
        assert segment in lost_segments or offset in found, f"offset {offset} is lost, its file was not touched"


def _check_what_was_synced(
    log: Log, found: dict[int, bytes], damaged: list[tuple[int, int]], stored: dict[int, bytes], promised: int
) -> None:
    """It is served or named, and its offsets are not given out again."""
    assert log.end_offset >= promised
    named = [(damage.begin, damage.end) for damage in (log.recovery.missing_front,) if damage is not None]
    for offset in stored:
        in_damage = any(begin <= offset < end for begin, end in [*damaged, *named])
        assert offset >= promised or offset in found or in_damage, f"{offset} was synced, and nobody says it is lost"


def _check_it_can_be_used(log: Log, found: dict[int, bytes], damaged: list[tuple[int, int]], sent: Sent) -> None:
    """Starting again changes nothing, and what is appended comes back."""
    end = log.end_offset
    abandon(log)
    log = opened(log._directory, log._config)
    assert log.end_offset == end, "recovery is not idempotent"
    assert not log.recovery.cuts
    again, damaged_again = readable(log)
    assert again == found
    assert damaged_again == damaged
    if sent is not None and sent[0] in found and not damaged:
        assert log.append([sent[1]], 100) == [sent[0]], "a batch that was stored is stored again"
    data, header = batch(b"afterwards")
    assert log.append([(data, header)], 100) == [end]
    assert log.reader.read(end, 1000) == bytes(data)
    log.close()


def main() -> int:
    """Run the seeds asked for; 1 at the first failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    done: Counter[str] = Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        try:
            done[run(seed)] += 1
        except BaseException:
            print(f"seed {seed} failed", file=sys.stderr)
            raise
    for what, count in done.most_common():
        print(f"{count:6} {what}")
    print(f"{arguments.count} corruptions, no wrong byte, no crash")
    return 0


if __name__ == "__main__":
    sys.exit(main())

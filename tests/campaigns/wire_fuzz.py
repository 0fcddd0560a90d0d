"""Send mutated frames to a real broker while a healthy client checks that it loses nothing.

`python -m tests.campaigns.wire_fuzz --frames 1000000 --seed 7`. Every frame follows from the seed and its number. The
run fails if the broker ends, if the canary's log is not exactly what the canary produced, if the canary is refused
anything, or if memory or open files stay taken after the topics that mutated frames made are gone.
"""

from __future__ import annotations

import argparse
import random
import shutil
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.wire.apis.metadata import MetadataRequest
from brokers.wire.apis.table import ApiKey
from brokers.wire.apis.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from brokers.wire.batch import decode_records, parse_header
from tests.campaigns.wire_corpus import FUZZED_TOPIC, corpus
from tests.integration.kafka.cluster import Cluster
from tests.integration.kafka.raw import Closed, RawClient, batch

MEMORY_GROWTH_BYTES_MAX = 64 * 1024 * 1024
FRAMES_A_CONNECTION = 40
FRAMES_A_WRITE = 4
SETTLE_S_MAX = 30
# So that no mutated frame can name it by chance.
CANARY_TOPIC = "canary-7c1d0f5ab2"
EDGES = (0, 1, -1, -2, 127, 128, 255, 2**15 - 1, -(2**15), 2**16, 2**31 - 1, -(2**31), 1_000_000)


# --- mutations: each takes a frame's body and returns another ----------------------------------------------------


def flip_bits(body: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.randrange(1, 5)):
        body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    return bytes(body)


def put_edge(body: bytearray, chance: random.Random) -> bytes:
    """An extreme number somewhere, as wide as lengths, counts and offsets are."""
    layout = chance.choice((">h", ">i", ">q"))
    size = struct.calcsize(layout)
    at = chance.randrange(max(1, len(body) - size))
    number = chance.choice(EDGES) & (256**size - 1)
    body[at : at + size] = number.to_bytes(size, "big")
    return bytes(body)


def cut(body: bytearray, chance: random.Random) -> bytes:
    return bytes(body[: chance.randrange(len(body))])


def insert(body: bytearray, chance: random.Random) -> bytes:
    at = chance.randrange(len(body))
    body[at:at] = chance.randbytes(chance.choice((1, 2, 4, 100)))
    return bytes(body)


def remove(body: bytearray, chance: random.Random) -> bytes:
    at = chance.randrange(len(body))
    del body[at : at + chance.randrange(1, 9)]
    return bytes(body)


def change_head(body: bytearray, chance: random.Random) -> bytes:
    """Another API or version over the same body."""
    body[:4] = struct.pack(">hh", chance.choice((*range(-1, 40), 32767)), chance.randrange(-1, 13))
    return bytes(body)


def garbage(body: bytearray, chance: random.Random) -> bytes:
    return bytes(body[:8]) + chance.randbytes(chance.randrange(200))


def unchanged(body: bytearray, chance: random.Random) -> bytes:
    return bytes(body)


MUTATIONS: tuple[Callable[[bytearray, random.Random], bytes], ...] = (
    flip_bits, flip_bits, put_edge, put_edge, cut, insert, remove, change_head, garbage, unchanged,
)  # fmt: skip


def frame(seeds: list[bytes], chance: random.Random) -> bytes:
    """One mutated frame; its length mostly fits, because a wrong one ends the conversation at once."""
    body = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        body = bytearray(chance.choice(MUTATIONS)(body or bytearray(1), chance))
    size = len(body) if chance.randrange(20) else chance.choice(EDGES)
    return struct.pack(">i", size) + bytes(body)


# --- who sends them ------------------------------------------------------------------------------------------------


def send_frames(port: int, frames: int, chance: random.Random) -> int:
    """Send `frames` over as many connections as it takes; how many connections the broker ended."""
    seeds, sent, ended = corpus(), 0, 0
    while sent < frames:
        with RawClient(port) as client:
            client.socket.settimeout(0.002)
            for _ in range(FRAMES_A_CONNECTION // FRAMES_A_WRITE):
                count = min(FRAMES_A_WRITE, frames - sent)
                try:
                    client.send(b"".join(frame(seeds, chance) for _ in range(count)))
                    sent += count
                    if not client.socket.recv(1 << 16):
                        ended += 1
                        break
                except TimeoutError:
                    continue
                except OSError:
                    ended += 1
                    break
    return ended


class Canary(threading.Thread):
    """A healthy client: each value is produced, acknowledged, read back, and where the canary thinks it is."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._client = RawClient(port)
        self._told_to_stop = threading.Event()
        self.stored = 0
        self.round_trips_ms: list[float] = []
        self.fault = ""

    def run(self) -> None:
        try:
            while not self._told_to_stop.wait(0.005):
                begin = time.perf_counter()
                self._round()
                self.round_trips_ms.append((time.perf_counter() - begin) * 1000)
        except (Closed, OSError, AssertionError) as error:
            self.fault = f"{type(error).__name__}: {error}"

    def _round(self) -> None:
        value = b"%d" % self.stored
        error, offset = self._client.produce(CANARY_TOPIC, batch(value))
        assert (error, offset) == (0, self.stored), f"produced {value!r}: error {error}, offset {offset}"
        error, _, records = self._client.fetch(CANARY_TOPIC, offset)
        assert error == 0, f"fetched {value!r}: error {error}"
        assert values(records) == [value], f"fetched {values(records)} at {offset}"
        self.stored += 1

    def finish(self) -> None:
        """Stop, and read everything back from the beginning."""
        self._told_to_stop.set()
        self.join()
        offset = 0
        while not self.fault and offset < self.stored:
            _, _, records = self._client.fetch(CANARY_TOPIC, offset)
            for value in values(records):
                if value != b"%d" % offset:
                    self.fault = f"{value!r} at offset {offset}"
                offset += 1
        self._client.socket.close()


def values(records: bytes) -> list[bytes | None]:
    found: list[bytes | None] = []
    while records:
        size = parse_header(records).size
        found += [record.value for record in decode_records(records[:size])]
        records = records[size:]
    return found


# --- the run -------------------------------------------------------------------------------------------------------


def create(client: RawClient, topic: str, partitions: int) -> None:
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
    answer = client.call(ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest(topics=(new,), timeout_ms=1000))
    assert answer.topics[0].error_code == 0


def delete_all_but_the_canarys(client: RawClient) -> int:
    topics = client.call(ApiKey.METADATA, 5, MetadataRequest(topics=None)).topics
    names = tuple(topic.name for topic in topics if topic.name != CANARY_TOPIC)
    client.call(ApiKey.DELETE_TOPICS, 3, DeleteTopicsRequest(topic_names=names, timeout_ms=1000))
    return len(names)


def left_behind(cluster: Cluster, files: int, memory: int) -> Iterator[str]:
    """What stays taken, once the broker has had time to close what its clients left."""
    end = time.monotonic() + SETTLE_S_MAX
    while cluster.open_files() > files and time.monotonic() < end:
        time.sleep(0.05)
    if cluster.open_files() > files:
        yield f"{cluster.open_files() - files} open files"
    if cluster.resident_bytes() - memory > MEMORY_GROWTH_BYTES_MAX:
        yield f"{(cluster.resident_bytes() - memory) >> 20} MiB of memory"


@contextmanager
def broker() -> Iterator[Cluster]:
    folder = Path(tempfile.mkdtemp(prefix="wire-fuzz-"))
    cluster = Cluster(folder, 1, {"log": {"retention_bytes": 50_000_000, "segment_bytes": 10_000_000}}).start()
    try:
        yield cluster
        cluster.stop()
    finally:
        for number in list(cluster.processes):
            cluster.kill(number)
        shutil.rmtree(folder)


def fuzz(frames: int, seed: int, workers: int) -> list[str]:
    """Run; the faults that were found, and a line of numbers on stdout."""
    with broker() as cluster:
        with RawClient(cluster.port()) as admin:
            create(admin, CANARY_TOPIC, 1)
            files, memory = cluster.open_files(), cluster.resident_bytes()
            create(admin, FUZZED_TOPIC, 2)
        canary = Canary(cluster.port())
        canary.start()
        ended = [0] * workers

        def work(number: int) -> None:
            ended[number] = send_frames(cluster.port(), frames // workers, random.Random(f"{seed}:{number}"))

        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(workers)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begin
        canary.finish()
        faults = [canary.fault] if canary.fault else []
        if not cluster.alive():
            return [*faults, "the broker ended"]
        with RawClient(cluster.port()) as admin:
            made = delete_all_but_the_canarys(admin)
        faults += left_behind(cluster, files, memory)
        if cluster.complaints():
            faults.append(cluster.complaints())
        trips = sorted(canary.round_trips_ms) or [0.0]
        print(
            f"{frames} frames in {seconds:.0f} s, seed {seed}; {sum(ended)} connections ended by the broker, "
            f"{made} topics made; canary: {canary.stored} messages, round trip "
            f"median {trips[len(trips) // 2]:.1f} ms, p99 {trips[len(trips) * 99 // 100]:.1f} ms"
        )
        return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.wire_fuzz", description=__doc__)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    faults = fuzz(options.frames, options.seed, options.workers)
    for fault in faults:
        print(f"FAULT: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

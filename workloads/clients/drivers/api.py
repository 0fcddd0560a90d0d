"""The contract of every driver, and the values that cross between the runner and its client processes.

A driver is told where the cluster is and what to send or read; it knows nothing of the architecture. It writes down
each request as it went (`RequestRow`), and into a `History` each operation where it is given one, and leaves every
judgement to the checkers and the analysis.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from workloads.errors import BrokerlabError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from workloads.clients.history import History

DRIVERS: Final = {"grpc": "workloads.clients.drivers.grpc", "kafka": "workloads.clients.drivers.kafka"}
OK: Final = "ok"
STORAGE_FAILED: Final = "STORAGE_FAILED"  # what every driver calls it when a broker's disk refuses
NS_PER_S: Final = 1_000_000_000
# A message's first eight bytes: its producer and its counter. The rest repeats one byte.
ID_BYTES: Final = 8
NO_ID: Final = b"\xff"  # stands for what a payload lacks of its id, so that ids stay aligned
COUNTER_BITS: Final = 48
_ID: Final = struct.Struct(">Q")
_FILLER: Final = b"\xa5"


class DriverError(BrokerlabError):
    """The cluster cannot be driven: nobody answers, or it refuses what a trial needs."""


class RequestRow(NamedTuple):
    """One request; or, where the client library hides its requests, all of a slice of time with their latencies."""

    partition: int  # -1 for a slice
    requests: int
    messages: int
    bytes: int
    sent_ns: int
    done_ns: int
    status: str
    latency: Mapping[int, int] | None = None  # bucket (`workloads.results.bucket_of`) -> requests, of a slice


@dataclass(frozen=True, slots=True)
class ProduceJob:
    driver: str
    bootstrap: tuple[str, ...]
    topic: str
    partitions: int
    producer: int
    messages: int | None  # exactly so many, or as many as `duration_s` takes
    duration_s: float | None
    message_size: int
    batch_size: int
    acks: int
    rate: float | None  # messages/s of this producer
    out: str
    answer_within_s: float = 60.0  # what has no answer by then has failed
    history: bool = False  # write down every operation, for checkers
    tell_every: int = 0  # with a history: tell the runner each time that so many more messages are acknowledged


@dataclass(frozen=True, slots=True)
class ConsumeJob:
    driver: str
    bootstrap: tuple[str, ...]
    topic: str
    partitions: tuple[int, ...]  # those that this consumer reads, where no group decides
    consumer: int
    group: str
    message_size: int
    batch_size: int
    fetch: str
    commit: str
    commit_interval_ms: int | None
    duration_s: float | None  # stop so long after the first message, should the targets be further away
    out: str
    end_to_end: bool = False  # note when each message came
    history: bool = False  # write down every operation, for checkers


@dataclass(slots=True)
class Produced:
    """A producer's result: rows of requests, and which messages were acknowledged.

    `sends` has the first counter of messages that were sent together, and when they were (with a fixed rate: when they
    were meant to be), in nanoseconds; each goes up to the next one's counter.
    """

    rows: list[RequestRow] = field(default_factory=list)
    sends: list[tuple[int, int]] = field(default_factory=list)
    sent: int = 0
    acknowledged: dict[int, list[range]] = field(default_factory=dict)  # partition -> counters
    failed: dict[str, int] = field(default_factory=dict)  # error -> messages

    def note(self, partition: int, counters: range, status: str) -> None:
        """Count consecutive messages as acknowledged, or as failed by `status`."""
        if status == OK:
            self.acknowledged.setdefault(partition, []).append(counters)
        else:
            self.failed[status] = self.failed.get(status, 0) + len(counters)


@dataclass(slots=True)
class Consumed:
    """A consumer's result, in its order: rows of requests, and per partition the ids of the messages.

    `receipts` has, per partition, how many messages came together and when; only where the job asks for it.
    """

    rows: list[RequestRow] = field(default_factory=list)
    ids: dict[int, bytearray] = field(default_factory=dict)
    receipts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    wrong_payloads: int = 0
    commits: int = 0

    def note_receipt(self, partition: int, messages: int, at_ns: int) -> None:
        self.receipts.setdefault(partition, []).append((messages, at_ns))


class Deadline:
    """The end of a job that goes by time, counted from its first message; of any other job, never over."""

    def __init__(self, duration_s: float | None) -> None:
        self._duration_s = duration_s
        self._ends = inf

    def begin(self) -> None:
        if self._ends == inf and self._duration_s is not None:
            self._ends = monotonic() + self._duration_s

    @property
    def over(self) -> bool:
        return monotonic() >= self._ends


class Signals(Protocol):
    """The runner's orders to a client in the middle of a job, and the answers that it waits for."""

    def started(self) -> None:
        """Tell the runner that the window of consumption has begun: producers of the same window may go."""

    def all_joined(self) -> bool:
        """Whether every consumer of the trial has joined."""

    def targets(self) -> Mapping[int, int] | None:
        """Partition -> end offset to read up to, once the runner knows it; None before."""


class Producer(Protocol):
    def connect(self) -> None:
        """Find the leaders and open the connections. Raises `DriverError`."""

    def run(self) -> Produced:
        """Send everything and wait for every acknowledgement. Failures carry the error's name."""

    def close(self) -> None: ...


class Consumer(Protocol):
    def join(self) -> None:
        """Become one of those who consume. Raises `DriverError`."""

    def settle(self, signals: Signals) -> Sequence[int]:
        """Wait until all have joined, and tell which partitions are this consumer's for good; it is ready to fetch
        them. Raises `DriverError`."""

    def run(self, signals: Signals) -> Consumed:
        """Read until the targets are reached."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class BrokerStatistics:
    """A broker's counters since its start."""

    broker: int
    operations: Mapping[str, tuple[int, int, int]]  # requests that carried messages, messages, bytes
    coordination: Mapping[str, tuple[int, int, int]]  # operations, bytes, wait_ns
    coordination_cpu_ns: int  # of the coordination client, where it is known apart; 0 where it has none


class DriverModule(Protocol):
    Producer: Callable[[ProduceJob, History | None], Producer]
    Consumer: Callable[[ConsumeJob, History | None], Consumer]


def load(name: str) -> DriverModule:
    if name not in DRIVERS:
        raise UserError(f"driver must be one of {', '.join(sorted(DRIVERS))} in this version, not {name!r}")
    return cast("DriverModule", import_module(DRIVERS[name]))


def payloads(job: ProduceJob, first_counter: int, count: int) -> Iterator[bytes]:
    """The payloads of consecutive messages, each unique."""
    filler = _filler(job.message_size)
    first = (job.producer << COUNTER_BITS) + first_counter
    return (_ID.pack(number) + filler for number in range(first, first + count))


def payload_is_right(payload: bytes, job: ConsumeJob) -> bool:
    """Whether the part behind the id is what a producer puts there."""
    return len(payload) == job.message_size and payload.endswith(_filler(job.message_size))


@lru_cache(maxsize=1)  # a process sends or reads one size at a time, and large ones take long to make
def _filler(message_size: int) -> bytes:
    return _FILLER * (message_size - ID_BYTES)

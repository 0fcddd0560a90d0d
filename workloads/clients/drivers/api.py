"""The contract of every driver, and the values that cross between the runner and its client processes.

A driver is told where the cluster is and what to send or read; it knows nothing of the architecture. It writes down
each request as it went (`RequestRow`), and into a `History` each operation where it is given one, and leaves every
judgement to the checkers and the analysis.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from workloads.errors import BrokerlabError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from workloads.clients.history import History

DRIVERS: Final = {"grpc": "workloads.clients.drivers.grpc", "kafka": "workloads.clients.drivers.kafka"}
OK: Final = "ok"
STORAGE_FAILED: Final = "STORAGE_FAILED"  # what every driver calls it when a broker's disk refuses
NS_PER_S: Final = 1_000_000_000
# A message's first eight bytes: its producer and its counter. The rest repeats one byte.
ID_BYTES: Final = 8
NO_ID: Final = b"\xff"  # stands for what a payload lacks of its id, so that ids stay aligned
COUNTER_BITS: Final = 48


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
    window_number: int = 0  # no row spans two windows


@dataclass(frozen=True, slots=True)
class WindowOrder:
    """A window as one client is told of it."""

    number: int
    messages: int | None = None  # producers: exactly so many, or until the runner says stop
    rate: float | None = None  # producers: messages/s of this one, or as fast as acknowledgements allow


@dataclass(frozen=True, slots=True)
class ProduceJob:
    driver: str
    bootstrap: tuple[str, ...]
    topic: str
    partitions: int
    producer: int
    message_size: int
    batch_size: int
    acks: int
    in_flight: int  # requests under way for each connection to a broker
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
    in_flight: int  # commits under way
    fetch_ahead: int  # batches of each partition that lie ready
    out: str
    end_to_end: bool = False  # producers work in the same windows: note when each message came
    history: bool = False  # write down every operation, for checkers


@dataclass(slots=True)
class Produced:
    """What came of a producer's window, or of several: rows of requests, and which messages were acknowledged.

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
        if status != OK:
            self.failed[status] = self.failed.get(status, 0) + len(counters)
            return
        blocks = self.acknowledged.setdefault(partition, [])
        if blocks and blocks[-1].stop == counters.start:
            blocks[-1] = range(blocks[-1].start, counters.stop)
        else:
            blocks.append(counters)

    def extend(self, later: Produced) -> None:
        """Add what came of a later window."""
        self.rows += later.rows
        self.sends += later.sends
        self.sent += later.sent
        for partition, blocks in later.acknowledged.items():
            self.acknowledged.setdefault(partition, []).extend(blocks)
        for status, messages in later.failed.items():
            self.failed[status] = self.failed.get(status, 0) + messages


class Receipt(NamedTuple):
    """Messages of one partition that came together."""

    messages: int
    at_ns: int
    window_number: int


@dataclass(slots=True)
class Consumed:
    """What came of a consumer's window, or of several, in its order: rows of requests, and per partition the ids of the
    messages. `receipts` are noted only where the job asks for it."""

    rows: list[RequestRow] = field(default_factory=list)
    ids: dict[int, bytearray] = field(default_factory=dict)
    receipts: dict[int, list[Receipt]] = field(default_factory=dict)
    wrong_payloads: int = 0
    commits: int = 0
    dry: bool = False  # it reached its targets before it was told to stop

    def note_receipt(self, partition: int, messages: int, at_ns: int, window_number: int = 0) -> None:
        self.receipts.setdefault(partition, []).append(Receipt(messages, at_ns, window_number))

    def extend(self, later: Consumed) -> None:
        """Add what came of a later window."""
        self.rows += later.rows
        for partition, ids in later.ids.items():
            self.ids.setdefault(partition, bytearray()).extend(ids)
        for partition, receipts in later.receipts.items():
            self.receipts.setdefault(partition, []).extend(receipts)
        self.wrong_payloads += later.wrong_payloads
        self.commits += later.commits
        self.dry = later.dry


class Signals(Protocol):
    """The runner's words to a client in the middle of a job, and the one that it waits for."""

    def working(self) -> None:
        """Tell the runner that this client is at work in the window. Only the first call says it."""

    def stopped(self) -> bool:
        """Whether no more is to be sent or taken in this window."""

    def all_joined(self) -> bool:
        """Whether every consumer of the trial has joined."""

    def targets(self) -> Mapping[int, int] | None:
        """Partition -> end offset to read up to and no further, once the runner knows it; None before."""


class Producer(Protocol):
    """One job, then any number of windows. Counters of messages go on from window to window."""

    def connect(self) -> None:
        """Find the leaders and open the connections. Raises `DriverError`."""

    def prepare(self, order: WindowOrder) -> None:
        """Make beforehand what the window needs."""

    def run(self, signals: Signals) -> Produced:
        """Send as the order says, until all is sent or the runner says stop, and wait for every acknowledgement. The
        result is that of this window alone; failures carry the error's name. Says `working` with the first batch that
        is acknowledged. Raises `DriverError`."""

    def close(self) -> None: ...


class Consumer(Protocol):
    """One job, then any number of windows. Each goes on at the offset at which the last one ended."""

    def join(self) -> None:
        """Become one of those who consume. Raises `DriverError`."""

    def settle(self, signals: Signals) -> Sequence[int]:
        """Wait until all have joined, and tell which partitions are this consumer's for good; it is ready to fetch
        them. Raises `DriverError`."""

    def prepare(self, order: WindowOrder) -> None:
        """Make beforehand what the window needs."""

    def run(self, signals: Signals, *, both: bool) -> Consumed:
        """Read until the targets are reached or the runner says stop, and commit how far; then nothing more is fetched.
        The result is that of this window alone. Says `working` with the first batch; where `both` ends work, or where
        no partition is its own, as soon as it fetches. Raises `DriverError`."""

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

"""Every key of experiments.yaml that holds a value: what is allowed, and what it is where nothing is said.

The reader, `--only` and (by its test) docs/experiments.md all go by these tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from workloads.spec import sizes
from workloads.spec.settings import ACKS_ALL, Rtt

BROKERS_MAX = 32
PARTITIONS_MAX = 1_024
CLIENTS_MAX = 64  # each is a process
MESSAGE_BYTES_MIN = 8  # a payload holds at least its producer and its counter, which is what makes it unique
# The payload of one request, which brokers store as one batch of 16 MiB at most. The largest batch's overhead,
# some 20 bytes a message, stays well within the rest, and so do the drivers' bounds (docs/decisions, 0028).
REQUEST_BYTES_MAX = 15 * 1024**2
MESSAGE_BYTES_MAX = REQUEST_BYTES_MAX
BATCH_MESSAGES_MAX = 10_000  # as many as an answer to a fetch over gRPC holds
INTERVAL_MS_MAX = 3_600_000
RATE_MAX = 1_000_000_000
RTT_MS_MAX = 10_000
HOST_CHARACTERS_MAX = 253
PORT_MAX = 65_535
MESSAGES_MAX = 10_000_000_000
SECONDS_MAX = 86_400
WINDOW_S_MAX = 3_600
LEAD_S_MAX = 60
IN_FLIGHT_MAX = 1_000
FETCH_AHEAD_MAX = 10_000
ROUNDS_MAX = 1_000
GATHER_MS_MAX = 1_000
TRIES_MAX = 1_000
WARMUPS_MAX = 100
PROCESSORS_MAX = 4_096
SEED_MAX = 2**63 - 1

T = TypeVar("T")

# Decimal digits without leading zeros, in threes where an underscore divides them. Text that other YAML readers take
# for octal (012), base 60 (1:30), a float (1e3) or a text is not a number here, so a number means the same to everyone.
_WHOLE = re.compile(r"0|[1-9][0-9]{0,18}|[1-9][0-9]{0,2}(_[0-9]{3}){1,6}", re.ASCII)
# Not led by a hyphen, which ssh would take for an option.
_HOST = re.compile(rf"[A-Za-z0-9][A-Za-z0-9.-]{{0,{HOST_CHARACTERS_MAX - 1}}}", re.ASCII)
_DECIMAL = re.compile(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A type of value. `parse` raises ValueError with a clause about the text, such as "it must be ..."."""

    allowed: str
    parse: Callable[[str], T]


@dataclass(frozen=True, slots=True)
class Policy:
    """When something happens: by a word, or (`interval`) as often as said."""

    word: str
    interval_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """`default` as it would stand in the file; None where a value must be given, or none is a value of its own."""

    kind: Kind[Any]
    default: str | None = None


def whole(low: int, high: int) -> Kind[int]:
    allowed = f"a whole number from {low:,} to {high:,}"

    def parse(text: str) -> int:
        if not _WHOLE.fullmatch(text) or not low <= (number := int(text)) <= high:
            raise ValueError(f"it must be {allowed}, in plain digits")
        return number

    return Kind(allowed, parse)


def decimal(low: float, high: float) -> Kind[float]:
    allowed = f"a number from {low:,} to {high:,}"

    def parse(text: str) -> float:
        if not _DECIMAL.fullmatch(text) or not low <= (number := float(text)) <= high:
            raise ValueError(f"it must be {allowed}, in plain digits")
        return number

    return Kind(allowed, parse)


def percent(low: float, high: float) -> Kind[float]:
    """A share, as in `10%`; its value is 0.1."""
    allowed = f"a percentage from {low:g}% to {high:g}%"
    number = decimal(low, high)

    def parse(text: str) -> float:
        try:
            return number.parse(text.removesuffix("%") if text.endswith("%") else "") / 100
        except ValueError:
            raise ValueError(f"it must be {allowed}, such as 10%") from None

    return Kind(allowed, parse)


def choice(values: Mapping[str, T]) -> Kind[T]:
    *others, last = values
    allowed = f"{', '.join(others)} or {last}" if others else last

    def parse(text: str) -> T:
        if text not in values:
            raise ValueError(f"it must be {allowed}")
        return values[text]

    return Kind(allowed, parse)


def word(*words: str) -> Kind[str]:
    return choice({each: each for each in words})


def policy(*words: str) -> Kind[Policy]:
    """One of the words; the reader of files takes `{interval_ms: N}` as well."""
    allowed = f"{', '.join(words)} or {{interval_ms: N}}"

    def parse(text: str) -> Policy:
        if text not in words:
            raise ValueError(f"it must be {allowed}")
        return Policy(text)

    return Kind(allowed, parse)


def _rate() -> Kind[float | None]:
    number = decimal(0.001, RATE_MAX)
    return Kind(f"max, or {number.allowed}", lambda text: None if text == "max" else number.parse(text))


def _rtt() -> Kind[Rtt]:
    """The one word for no delay anywhere; the reader of files takes a mapping of pairs as well."""
    allowed = "0, or {broker_zookeeper: N, broker_broker: N, client_broker: N}"

    def parse(text: str) -> Rtt:
        if text != "0":
            raise ValueError(f"it must be {allowed}")
        return Rtt()

    return Kind(allowed, parse)


def _load() -> Kind[float | None]:
    share = percent(1, 100)

    def parse(text: str) -> float | None:
        return None if text == "none" else share.parse(text)

    return Kind(share.allowed, parse)


def _host() -> Kind[str]:
    allowed = f"a host's name or address, of up to {HOST_CHARACTERS_MAX} letters, digits, dots and hyphens"

    def parse(text: str) -> str:
        if not _HOST.fullmatch(text):
            raise ValueError(f"it must be {allowed}")
        return text

    return Kind(allowed, parse)


def addresses() -> Kind[str]:
    allowed = "HOST:PORT, or several with commas between"

    def parse(text: str) -> str:
        for address in text.split(","):
            host, _, port = address.rpartition(":")
            if not _HOST.fullmatch(host) or not _WHOLE.fullmatch(port) or not 1 <= int(port) <= PORT_MAX:
                raise ValueError(f"it must be {allowed}")
        return text

    return Kind(allowed, parse)


def _path() -> Kind[str]:
    return Kind("the path of a file", str)


def _message_sizes() -> Kind[list[int]]:
    low, high = sizes.format_size(MESSAGE_BYTES_MIN), sizes.format_size(MESSAGE_BYTES_MAX)
    allowed = f"a size from {low} to {high}, or a doubling range of them such as 8B..128KB"

    def parse(text: str) -> list[int]:
        found = sizes.parse_sizes(text)
        if found[0] < MESSAGE_BYTES_MIN or found[-1] > MESSAGE_BYTES_MAX:
            raise ValueError(f"it must be {allowed}")
        return found

    return Kind(allowed, parse)


INTERVAL_MS = whole(1, INTERVAL_MS_MAX)
RTT_MS = decimal(0, RTT_MS_MAX)
EXPERIMENT = {
    "message_size": Key(_message_sizes()),
    "batch_size": Key(whole(1, BATCH_MESSAGES_MAX)),
    "mode": Key(word("split", "streaming", "load")),
}
CLUSTER = {
    "brokers": Key(whole(1, BROKERS_MAX), "3"),
    "partitions": Key(whole(1, PARTITIONS_MAX), "3"),
    "replication_factor": Key(whole(1, BROKERS_MAX), "1"),
    "acks": Key(choice({"0": 0, "1": 1, "all": ACKS_ALL}), "1"),
    "fsync": Key(policy("never", "always"), "never"),
    "topology": Key(word("loopback", "namespaces", "hosts"), "loopback"),
    "rtt_ms": Key(_rtt(), "0"),
    "gather_ms": Key(whole(0, GATHER_MS_MAX), "2"),
}
WORKLOAD = {
    "driver": Key(word("kafka", "grpc"), "kafka"),
    "producers": Key(whole(1, CLIENTS_MAX), "1"),
    "consumers": Key(whole(1, CLIENTS_MAX), "1"),
    "commit": Key(policy("every_batch", "end"), "every_batch"),
    "fetch": Key(word("batch", "stream"), "batch"),
    "rate": Key(_rate(), "max"),
    "in_flight": Key(whole(1, IN_FLIGHT_MAX), "5"),
    "fetch_ahead": Key(whole(1, FETCH_AHEAD_MAX), "20"),
}
# Only of experiments in mode load, which must have it.
LOAD = {"load": Key(_load(), "none")}
# The axes of an experiment, in the order in which a cell's id names them.
AXES = EXPERIMENT | CLUSTER | WORKLOAD | LOAD
# Leave to do what would otherwise be taken for a mistake; no axis, for it changes nothing that is measured.
PERMISSIONS = {"idle_consumers": Key(choice({"true": True, "false": False}), "false")}
TRIALS = {
    "order": Key(word("interleaved"), "interleaved"),
    "seed": Key(whole(0, SEED_MAX), "2017"),
    "warmup": Key(whole(0, WARMUPS_MAX), "1"),
    "timeout_s": Key(decimal(5, SECONDS_MAX), "120"),
}
PROFILE = {
    "messages": Key(whole(1, MESSAGES_MAX)),
    "duration_s": Key(decimal(0.01, WINDOW_S_MAX)),
    "lead_s": Key(decimal(0, LEAD_S_MAX), "0.1"),
    "tries": Key(whole(1, TRIES_MAX)),
    "rounds": Key(whole(1, ROUNDS_MAX), "1"),
    "budget_s": Key(decimal(1, SECONDS_MAX)),
    "precision": Key(percent(0.1, 100), "10%"),
    "warmup": TRIALS["warmup"],
    "timeout_s": TRIALS["timeout_s"],
}
# The processors that the processes of a role may use.
HOSTS = {"brokers": Key(_host()), "zookeeper": Key(_host()), "ssh_config": Key(_path())}
PIN = {role: Key(whole(0, PROCESSORS_MAX - 1)) for role in ("brokers", "coordinator", "clients")}


def takes_interval(key: str) -> bool:
    """Whether an axis may also be written as `{interval_ms: N}`."""
    return key in {"fsync", "commit"}

"""The table of architectures: what a file of experiments can name, and all that the instrument knows of each.

A row is a way to coordinate that some system has. Everything that differs from row to row stands here and nowhere else:
the reader, the plan, the estimate, the manifest, `doctor` and the systems look it up. A row outside the product is
named by where it stands, `MODULE:ROW`, and is then as good as one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from workloads.reference import load
from workloads.spec.keys import INTERVAL_MS, Key, Kind, addresses, whole, word
from workloads.spec.settings import Architecture

# kazoo, one operation at a time, which is the slowest that it is: a wait too long is the better surprise.
_ZOOKEEPER_READ_S: Final = 1 / 2_800
_ZOOKEEPER_WRITE_S: Final = 1 / 2_300
HEAP_MB_MAX: Final = 65_536
DELAY_US_MAX: Final = 10_000_000
OURS: Final = "brokerlab"  # the system of our own brokers, which a row's coordinator is plugged into
COORDINATOR, SYSTEM = "coordinator", "system"  # the keys by which a file names a row: of our system, of another


class Option(NamedTuple):
    """A choice that a row leaves to the file. One without a default must be given; with `only_with`, if and only if
    that other option has that value."""

    key: Key
    only_with: tuple[str, str] | None = None


class Waits(NamedTuple):
    """The clients' wait for coordination, by the measurements before the design; for the estimate alone."""

    request_s: float = 0.0
    commit_s: float = 0.0  # of a commit of every batch


def _nothing() -> None:
    """The packages that `make setup` installs are there."""


class Program(NamedTuple):
    """A requirement of a row on this machine, beside Python's packages."""

    name: str
    version: Callable[[], str]  # raises `UserError` where it is not there
    place: Callable[[], object]
    mend: str  # the command that brings it
    optional: bool = False  # no row of the default profiles needs it
    bring: Callable[[], object] = _nothing  # before a run that needs it; raises `UserError` where it cannot be had


def _no_waits(options: Mapping[str, Any]) -> Waits:
    return Waits()


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    system: str = OURS  # of `registry.SYSTEMS`, or `MODULE:CLASS`
    coordinator: str = (
        ""  # what our brokers are told: of their own registry, or `MODULE:CLASS`; empty for other systems
    )
    options: Mapping[str, Option] = field(default_factory=dict)
    service: str | None = None  # what it coordinates through: the name of a process, and of the place where it runs
    programs: tuple[str, ...] = ()  # `MODULE:PROGRAM`
    drivers: tuple[str, ...] = ("kafka", "grpc")
    topologies: tuple[str, ...] = ("loopback", "namespaces", "hosts")
    start_s: float = 1.5  # of a cluster, for the estimate
    waits: Callable[[Mapping[str, Any]], Waits] = _no_waits

    def needed(self) -> list[Program]:
        return [load(reference) for reference in self.programs]

    @property
    def named_by(self) -> str:
        """The key of the file under which its name stands."""
        return COORDINATOR if self.system == OURS else SYSTEM


_DELAY_US: Final = Option(Key(whole(0, DELAY_US_MAX), "0"))
_OF_KAFKA: Final = {"heap_mb": Option(Key(whole(256, HEAP_MB_MAX), "1024"))}  # of each broker; Kafka's own default


def _zookeeper_waits(options: Mapping[str, Any]) -> Waits:
    delay_s = options.get("delay_us", 0) / 1e6
    return Waits(
        0.0 if options["metadata"] == "watch" else _ZOOKEEPER_READ_S + delay_s,
        _ZOOKEEPER_WRITE_S + delay_s if options["offsets"] == "zookeeper_each" else 0.0,
    )


def _own_waits(options: Mapping[str, Any]) -> Waits:
    """Those of a broker that asks nobody: what was planted."""
    delay_s = options.get("delay_us", 0) / 1e6
    return Waits(
        delay_s if options.get("metadata") == "lookup" else 0.0, 0.0 if options.get("offsets") == "memory" else delay_s
    )


ROWS: Final = {
    row.name: row
    for row in (
        Row(
            "static",
            coordinator="static",
            options={
                "metadata": Option(Key(word("memory", "lookup"), "memory")),
                "offsets": Option(Key(word("memory", "journal"), "journal")),
                "delay_us": _DELAY_US,
            },
            start_s=1.0,
            waits=_own_waits,
        ),
        Row(
            "zookeeper",
            coordinator="zookeeper",
            options={
                "metadata": Option(Key(word("watch", "lookup", "lookup_each"), "lookup")),
                "offsets": Option(Key(word("memory", "zookeeper_each", "zookeeper_interval"), "zookeeper_each")),
                "offsets_interval_ms": Option(Key(INTERVAL_MS), only_with=("offsets", "zookeeper_interval")),
                "delay_us": _DELAY_US,
            },
            service="zookeeper",
            programs=("workloads.services.zookeeper:PROGRAM",),
            start_s=3.0,  # ZooKeeper's JVM starts in about a second
            waits=_zookeeper_waits,
        ),
        Row(
            "dsbs",
            coordinator="dsbs",
            options={
                "offsets": Option(Key(word("memory", "journal", "journal_copied"), "journal_copied")),
                "delay_us": _DELAY_US,
            },
            waits=_own_waits,
        ),
        Row(
            "kafka-kraft",
            system="kafka",
            options=_OF_KAFKA,
            programs=("workloads.systems.kafka_jars:KRAFT",),
            drivers=("kafka",),
            topologies=("loopback",),
            start_s=8.0,
        ),
        Row(
            "kafka-zookeeper",
            system="kafka",
            options=_OF_KAFKA,
            service="zookeeper",
            programs=("workloads.services.zookeeper:PROGRAM", "workloads.systems.kafka_jars:ZOOKEEPER"),
            drivers=("kafka",),
            topologies=("loopback",),
            start_s=8.0,
        ),
        Row(
            "external",
            system="external",
            options={"bootstrap": Option(Key(addresses()))},
            drivers=("kafka",),
            topologies=("loopback",),
            start_s=0.5,
        ),
    )
}
# The architectures of a playground where no file names them.
ORDINARY: Final = {
    each.name: each
    for each in (
        Architecture("static", "static", (("metadata", "memory"), ("offsets", "memory"))),
        Architecture("dsbs", "dsbs", (("offsets", "journal_copied"),)),
        Architecture("zookeeper", "zookeeper", (("metadata", "lookup"), ("offsets", "zookeeper_each"))),
        Architecture(
            "zookeeper-watch",
            "zookeeper",
            (("metadata", "watch"), ("offsets", "zookeeper_interval"), ("offsets_interval_ms", 1000)),
        ),
    )
}


def row_of(architecture: Architecture) -> Row:
    return row_named(architecture.row)


def row_named(reference: str) -> Row:
    """A row of the table, or the one outside the product that stands at `MODULE:ROW`. Raises `ValueError` with a clause
    that says what is wrong."""
    if reference in ROWS:
        return ROWS[reference]
    row = load(reference)
    if not isinstance(row, Row):
        raise ValueError(  # noqa: TRY004 - of a text in somebody's file
            f"{reference} is no row of architectures but {type(row).__name__!r}"
        )
    return row


def row_kind(named_by: str) -> Kind[str]:
    """The values of the key that names a row; a value is the row's name."""
    *others, last = [row.name for row in ROWS.values() if row.named_by == named_by]
    allowed = f"{', '.join(others)} or {last}" if others else last
    allowed = f"{allowed}, or MODULE:ROW of another"

    def parse(text: str) -> str:
        if text not in ROWS and ":" not in text:
            raise ValueError(f"it must be {allowed}")
        row = row_named(text)
        if row.named_by != named_by:
            raise ValueError(f"that is named by the key {row.named_by!r}")
        return text

    return Kind(allowed, parse)


def bring_programs(architectures: Iterable[Architecture]) -> None:
    """Fetch what these need and this machine lacks. Raises `UserError` where it cannot be had."""
    for program in dict.fromkeys(program for each in architectures for program in row_of(each).needed()):
        program.bring()


def programs() -> list[Program]:
    """The requirements of the table's rows, each once."""
    return list(dict.fromkeys(program for row in ROWS.values() for program in row.needed()))

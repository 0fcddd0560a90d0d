"""The costs of an architecture: coordination operations, processor time, memory, and the requests that really happened.

Brokers and the runner count costs by trial, window and process. Spark sums them by trial and window; all that follows
is pure. A window's costs are read from before its clients' start to after their end, so they are divided by all
messages of that window's number: by those produced for the producers' end, and by those consumed for the consumers'
end. In streaming, where the two differ much, each end is given apart. Only used windows of valid trials are in it.

Seconds are summed as whole microseconds, so that sums do not depend on the order in which rows arrive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as fn

from analysis.findings import Found
from analysis.measures.rates import ARCHITECTURE, CELL, MEASURED, Sums

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.group import GroupedData

# Every architecture of a run should share these, cell by cell; the report shows whether they do.
HELD_EQUAL = (
    "system",
    "driver",
    "brokers",
    "partitions",
    "replication_factor",
    "acks",
    "fsync",
    "producers",
    "consumers",
    "commit",
    "fetch",
    "in_flight",
    "fetch_ahead",
    "rate",
    "topology",
    "rtt_ms",
)
SERVERS = ("broker", "coordinator")  # what an architecture costs; clients and the network are the instrument's
_ROLE_OF_OPERATION = {"produce": "production", "fetch": "consumption"}
_GROUP = (*CELL, *ARCHITECTURE, "window", "role")
_WINDOW = ("trial_id", "number", "window")
Row = dict[str, Any]
Key = tuple[object, ...]


def resource_sums(trials: DataFrame) -> DataFrame:
    """Per trial, window and kind of process; empty where no process of the kind counts it."""
    cpu_us = _microseconds(fn.col("e.cpu_user_s") + fn.col("e.cpu_system_s"))
    wall_us = _microseconds(fn.col("e.wall_s"))
    return _by(trials, "resources", "role", "process").agg(
        fn.sum(cpu_us).alias("cpu_us"),
        fn.max(fn.when(wall_us > 0, cpu_us / wall_us)).alias("cores_busiest"),
        fn.max("e.rss_max_bytes").alias("rss_max_bytes"),
        fn.sum("e.written_bytes").alias("written_bytes"),
        fn.sum("e.received_bytes").alias("received_bytes"),
        fn.sum("e.sent_bytes").alias("sent_bytes"),
        fn.sum(_microseconds(fn.col("e.gc_pause_s"))).alias("gc_pause_us"),
        fn.sum(_microseconds(fn.col("e.coordination_cpu_s"))).alias("coordination_cpu_us"),
    )


def coordination_sums(trials: DataFrame) -> DataFrame:
    """Per trial, window and operation."""
    return _by(trials, "coordination", "operation", "operation").agg(
        fn.sum("e.count").alias("count"),
        fn.sum("e.bytes").alias("bytes"),
        fn.sum(_microseconds(fn.col("e.wait_s"))).alias("wait_us"),
    )


def request_sums(trials: DataFrame) -> DataFrame:
    """Per trial, window and operation, as the brokers counted them."""
    return _by(trials, "broker_requests", "operation", "operation").agg(
        fn.sum("e.messages").alias("messages"), fn.sum("e.requests").alias("requests")
    )


def _by(trials: DataFrame, column: str, field: str, name: str) -> GroupedData:
    entries = trials.select("trial_id", fn.explode(column).alias("e"))
    keys = [fn.col(f"e.{key}").alias(key) for key in ("number", "window")]
    return entries.groupBy("trial_id", *keys, fn.col(f"e.{field}").alias(name))


def _microseconds(seconds: Column) -> Column:
    return fn.round(seconds * 1_000_000).cast("bigint")


@dataclass(frozen=True, slots=True)
class Worked:
    """The used windows: what each one's costs are divided by, and where they belong."""

    rows: Sequence[Found]  # a row a window and role
    sums: Mapping[tuple[str, str, int], Sums]

    def messages(self, row: Found) -> int:
        """All that this role did in this window, before it opened and after it closed, too."""
        own = self.sums.get((row["trial_id"], row["role"], row["number"]))
        return own.messages if own else 0

    def requests(self, row: Found) -> int:
        own = self.sums.get((row["trial_id"], row["role"], row["number"]))
        return own.requests if own else 0

    def groups(self) -> dict[Key, list[Found]]:
        """The rows of each cell, architecture, window and role."""
        found: dict[Key, list[Found]] = defaultdict(list)
        for row in self.rows:
            found[tuple(row[name] for name in _GROUP)].append(row)
        return found


def coordination(entries: Iterable[Found], worked: Worked) -> list[Row]:
    """Per cell, architecture, window, role and operation, for 1,000 messages: operations, bytes, milliseconds waited.

    A window without the operation has no entry; its messages count all the same. An operation of time and no message
    (a local write that a commit waits for) is coordination as well.
    """
    return [
        {
            **group,
            "operation": operation,
            "operations": _divided(_total(own, "count"), messages, 1000),
            "bytes": _divided(_total(own, "bytes"), messages, 1000),
            "wait_ms": _divided(_total(own, "wait_us"), messages),
        }
        for group, operation, own, messages in _costs(entries, "operation", worked)
        if _total(own, "count") or _total(own, "wait_us")
    ]


def resources(entries: Iterable[Found], worked: Worked) -> list[Row]:
    """Per cell, architecture, window, role and kind of process: processor time a message, memory, disk, network, cores.

    `cores_busiest` is the most of a core that one such process used: near 1, it likely limits the rate. A column
    that no process of the kind counts stays None.
    """
    each = ("cpu_us", "written_bytes", "received_bytes", "sent_bytes", "gc_pause_us", "coordination_cpu_us")
    return [
        {
            **group,
            "process": process,
            "cores_busiest": _most(own, "cores_busiest"),
            "rss_max_mb": _divided(_most(own, "rss_max_bytes"), 1 << 20),
            **{f"{name}_per_message": _divided(_total(own, name), messages) for name in each},
        }
        for group, process, own, messages in _costs(entries, "process", worked)
    ]


def _costs(entries: Iterable[Found], name: str, worked: Worked) -> Iterable[tuple[Row, str, list[Found], int]]:
    """By cell, architecture, window, role and `name`: the entries of its windows, and their messages.

    An end that did nothing has no cost of a message.
    """
    by_window: dict[Key, list[Found]] = defaultdict(list)
    for entry in entries:
        by_window[tuple(entry[part] for part in _WINDOW)].append(entry)
    for key, rows in worked.groups().items():
        messages = sum(map(worked.messages, rows))
        named: dict[str, list[Found]] = defaultdict(list)
        for row in rows:
            for entry in by_window[tuple(row[part] for part in _WINDOW)]:
                named[entry[name]].append(entry)
        for value, own in named.items():
            if messages:
                yield dict(zip(_GROUP, key, strict=True)), value, own, messages


def processor_time(entries: Iterable[Found], worked: Worked) -> list[Row]:
    """The rows of windows with `cpu_us`: the servers' processor time a message, None where it is not known."""
    used: dict[Key, list[Found]] = defaultdict(list)
    for entry in entries:
        if entry["process"] in SERVERS:
            used[tuple(entry[part] for part in _WINDOW)].append(entry)
    return [{**row, "cpu_us": _cpu_us(used[tuple(row[part] for part in _WINDOW)], row, worked)} for row in worked.rows]


def _cpu_us(own: Sequence[Found], row: Found, worked: Worked) -> float | None:
    """None, too, where the window holds too few messages for a rate."""
    if row["rps"] is None or not own or any(entry["cpu_us"] is None for entry in own):
        return None
    return _divided(_total(own, "cpu_us"), worked.messages(row))


def batches(entries: Iterable[Found], worked: Worked) -> list[Row]:
    """Per cell, architecture and role: messages a request, as clients and as brokers counted them."""
    served: dict[Key, list[Found]] = defaultdict(list)
    for entry in entries:
        role = _ROLE_OF_OPERATION.get(entry["operation"])
        served[(*(entry[part] for part in _WINDOW), role)].append(entry)
    rows = []
    for key, own in worked.groups().items():
        by_brokers = [entry for row in own for entry in served[(*(row[part] for part in _WINDOW), row["role"])]]
        messages, requests = (sum(map(of, own)) for of in (worked.messages, worked.requests))
        group = {name: value for name, value in zip(_GROUP, key, strict=True) if name != "window"}
        by_broker = _divided(_total(by_brokers, "messages"), _total(by_brokers, "requests"))
        rows.append({**group, "client": _divided(messages, requests), "broker": by_broker})
    return rows


def _total(entries: Iterable[Found], name: str) -> float | None:
    known = [entry[name] for entry in entries if entry[name] is not None]
    return sum(known) if known else None


def _most(entries: Iterable[Found], name: str) -> float | None:
    return max((entry[name] for entry in entries if entry[name] is not None), default=None)


def _divided(above: float | None, below: float | None, scale: float = 1) -> float | None:
    return None if above is None or not below else above * scale / below


def equality(trials: Iterable[Found]) -> list[Row]:
    """Per setting that every architecture should share: its values, and in how many cells architectures differ.

    A setting that a system does not tell is not known to be equal.
    """
    measured = [trial for trial in trials if trial["kind"] == MEASURED]
    rows = []
    for setting in HELD_EQUAL if measured else ():
        in_cells: dict[str, set[str]] = defaultdict(set)
        for trial in measured:
            in_cells[trial["cell"]].add(_setting(setting, trial[setting]))
        found = ", ".join(sorted(set().union(*in_cells.values())))
        differ = sum(len(values) > 1 for values in in_cells.values())
        rows.append({"setting": setting, "found": found, "cells_that_differ": differ})
    return rows


def _setting(name: str, value: object) -> str:
    if value is None:
        return "max" if name == "rate" else "not known"
    return str(value)

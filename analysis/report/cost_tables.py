"""The tables of costs: a request's time, coordination, processors and memory."""

from __future__ import annotations

from analysis.findings import Findings
from analysis.measures import request_time
from analysis.report.columns import ARCHITECTURE, CELL, ROLE, WINDOW, by_architecture
from analysis.report.formats import Column, Table


def request_times(found: Findings) -> Table:
    """A request's time, split into data path and coordination, and the ratios at other prices of coordination."""
    return Table(
        name="request_time",
        title="A request's time: data path and coordination",
        note="Microseconds of one request: batch size / rate. Data path: the time of `static` in the same cell. "
        "Coordination: what the architecture adds. Waited: all waits that the brokers counted, added up; empty where "
        "they count none. At once: how many requests waited at the same time, so that their waits overlap. "
        f"The ratios are to {request_time.base_of(found)}, if a coordination request cost k times as much as it did: "
        "data path + k x coordination, with as many waits overlapping as did here.",
        columns=(
            ARCHITECTURE,
            *CELL,
            WINDOW,
            Column("request_us", "Request (µs)", "number"),
            Column("data_us", "Data path (µs)", "number"),
            Column("coordination_us", "Coordination (µs)", "number"),
            Column("waited_us", "Waited (µs)", "number"),
            Column("waiting_at_once", "at once", "number"),
            *(
                Column(request_time.factor_name(factor), f"Ratio at {factor:g}", "number")
                for factor in request_time.FACTORS
            ),
        ),
        rows=by_architecture(request_time.splits(found)),
        sections=("architecture",),
    )


def coordination_request(found: Findings) -> Table:
    """The parts of one request to a coordinator."""
    return Table(
        name="coordination_request",
        title="A coordination request: client, server, and the rest",
        note="Microseconds of one coordination request that a client's request waited for: the wait from the broker's "
        "question to its answer; processor time of the coordination client in the brokers (kazoo's, for "
        "ZooKeeper); processor time of the coordinator; and the rest of the wait: the wire, the brokers' event "
        "loops, and the queue behind other requests.",
        columns=(
            ARCHITECTURE,
            *CELL,
            WINDOW,
            Column("operations", "for 1,000 messages", "number"),
            Column("wait_us", "Wait (µs)", "number"),
            Column("client_us", "Client's CPU (µs)", "number"),
            Column("server_us", "Server's CPU (µs)", "number"),
            Column("rest_us", "Wire and waiting (µs)", "number"),
        ),
        rows=by_architecture(request_time.requests(found)),
        sections=("architecture",),
    )


def coordination_cost(found: Findings) -> Table:
    """The operations of the brokers that were coordination."""
    return Table(
        name="coordination_cost",
        title="Coordination, for 1,000 messages",
        note="What the brokers counted: operations, bytes, and the time that requests waited for them, for every 1,000 "
        "messages of that end. Streaming has both ends at once, and a row for each. An architecture without a row made "
        "none or counts none.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            Column("operation", "Operation"),
            Column("operations", "Operations", "number"),
            Column("bytes", "Bytes", "number"),
            Column("wait_ms", "Waited (ms)", "number"),
        ),
        rows=by_architecture(found.coordination),
        sections=("architecture",),
    )


def resources(found: Findings) -> Table:
    """Processor, memory and disk by kind of process."""
    return Table(
        name="resources",
        title="Processor, memory and disk",
        note="By kind of process, for a produced message and for a consumed one. Streaming has both ends at once, so "
        "that its two rows are the same time over different messages. Cores: the most that one such process used; near "
        "1, it likely limits the rate.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            Column("process", "Process"),
            Column("cpu_us_per_message", "CPU (µs/message)", "number"),
            Column("cores_busiest", "Cores, busiest", "number"),
            Column("rss_max_mb", "Peak memory (MiB)", "number"),
            Column("written_bytes_per_message", "Written (bytes/message)", "number"),
            Column("received_bytes_per_message", "Received (bytes/message)", "number"),
            Column("sent_bytes_per_message", "Sent (bytes/message)", "number"),
            Column("gc_pause_us_per_message", "Stopped for GC (µs/message)", "number"),
            Column("coordination_cpu_us_per_message", "of CPU, coordination client (µs/message)", "number"),
        ),
        rows=by_architecture(found.resources),
        sections=("architecture",),
    )


def batches(found: Findings) -> Table:
    """The messages that a request really carried."""
    return Table(
        name="messages_per_request",
        title="Messages per request that really happened",
        note="The cell asks for one number (Batch), clients saw one, and brokers counted one.",
        columns=(
            ARCHITECTURE,
            *CELL,
            ROLE,
            Column("client", "Clients saw", "number"),
            Column("broker", "Brokers counted", "number"),
        ),
        rows=by_architecture(found.batches),
        sections=("architecture",),
    )

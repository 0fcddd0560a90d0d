"""Synthetic raw records with known answers, written by `workloads.results` as a run would write them.

`python -m tests.made_records DIR` makes a whole run: five architectures, one of them twice, fourteen cells, three
blocks. `tests/former_records.py` writes the same as records of version 2.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workloads import results

ARCHITECTURES = ("zookeeper", "zookeeper-watch", "dsbs", "static", "static-again")
SPEC_HASH = "made"
START_NS = 1_000_000_000
CORES = 2  # of the machine
# Of one coordination operation: how long a request waited for it, and the processor time of both ends.
WAIT_S, CLIENT_CPU_S, SERVER_CPU_S = 500e-6, 120e-6, 60e-6
_GAP_NS = 50_000_000  # between a trial's windows
_ROLES = {"production": ("producer",), "consumption": ("consumer",), "both": ("producer", "consumer")}


@dataclass(frozen=True, slots=True)
class MadeTrial:
    """One trial. Each of its windows sends `messages`, in `rows` requests for each role."""

    architecture: str
    production_s: float = 1.0
    consumption_s: float = 1.0
    message_size: int = 8
    batch_size: int = 20
    mode: str = "split"
    others: str = ""
    try_: int = 1
    kind: str = "measured"
    messages: int = 30_000
    rows: int = 3
    name: str = ""
    rounds: int = 1
    lead_s: float = 0.0  # clients work so long before a window opens and after it closes; 0: the window is whole
    foreign_cores: float | None = 0.0
    columns: Mapping[str, Any] = field(default_factory=dict)  # overrides of the trial's row

    @property
    def cell(self) -> str:
        axes = f"message_size={self.message_size},batch_size={self.batch_size},mode={self.mode}"
        return f"{axes},{self.others}" if self.others else axes

    @property
    def trial_id(self) -> str:
        return self.name or f"{self.cell}/{self.architecture}/{self.try_}"


@dataclass(frozen=True, slots=True)
class MadeWindow:
    """One window of a trial: who works in it, from when, and how long."""

    number: int
    window: str
    round: int
    start_ns: int
    lengths_s: Mapping[str, float]  # of each client's work

    @property
    def longest_s(self) -> float:
        return max(self.lengths_s.values())


def windows(made: MadeTrial) -> Iterator[MadeWindow]:
    """All windows of production, then all of consumption; one of both for each round where both ends work at once."""
    number, start_ns = 0, START_NS
    for window in ("production", "consumption") if made.mode == "split" else ("both",):
        for turn in range(1, made.rounds + 1):
            number += 1
            stretch = 1 + 0.004 * ((5 * turn + 3 * made.try_) % 7 - 3) if made.rounds > 1 else 1.0
            own = {"producer": made.production_s * stretch, "consumer": made.consumption_s * stretch}
            one = MadeWindow(number, window, turn, start_ns, {role: own[role] for role in _ROLES[window]})
            yield one
            start_ns += round(max(0.0, one.longest_s) * 1e9) + _GAP_NS


def window_s(rps: float, messages: int = 30_000) -> float:
    """The window that gives `messages` at this rate."""
    return messages / rps


def trial_row(made: MadeTrial) -> dict[str, Any]:
    """The row in trials/; every cost is so many microseconds or operations a message, by architecture."""
    n = made.messages * made.rounds
    row: dict[str, Any] = {
        "schema_version": results.SCHEMA_VERSION,
        "spec_hash": SPEC_HASH,
        "trial_id": made.trial_id,
        "kind": made.kind,
        "cell": made.cell,
        "experiments": ["made"],
        "architecture": made.architecture,
        "architecture_rank": ARCHITECTURES.index(made.architecture) if made.architecture in ARCHITECTURES else 9,
        "settings": made.architecture.removesuffix("-again"),
        "try": made.try_,
        "position": made.try_,
        "mode": made.mode,
        "message_size": made.message_size,
        "batch_size": made.batch_size,
        "system": "brokerlab",
        "driver": "kafka",
        "brokers": 3,
        "partitions": 3,
        "replication_factor": 1,
        "acks": 1,
        "fsync": "never",
        "producers": 1,
        "consumers": 1,
        "commit": "every_batch",
        "fetch": "batch",
        "in_flight": 5,
        "fetch_ahead": 20,
        "rate": None,
        "load": None,
        "topology": "loopback",
        "rtt_ms": "0",
        "sent": n,
        "acknowledged": n,
        "stored": n,
        "consumed": n,
        "create_topic_s": 0.02,
        "connect_s": 0.01,
        "join_s": 0.3,
        "windows": [_window_entry(made, one) for one in windows(made)],
        "verdict": "valid",
        "reason": "",
        "resources": list(_resources(made)),
        "coordination": list(_coordination(made)),
        "broker_requests": list(_broker_requests(made)),
    }
    return row | dict(made.columns)


def _window_entry(made: MadeTrial, one: MadeWindow) -> dict[str, Any]:
    lead_ns = round(made.lead_s * 1e9)
    end_ns = one.start_ns + round(one.longest_s * 1e9)
    return {
        "number": one.number,
        "window": one.window,
        "round": one.round,
        "attempt": 1,
        "place": made.try_,
        "opened_ns": one.start_ns + lead_ns if lead_ns else None,
        "closed_ns": end_ns - lead_ns if lead_ns else None,
        "wall_s": one.longest_s,
        "cores": CORES,
        "busy_cores": 1.5,
        "stolen_cores": 0.0,
        "foreign_cores": made.foreign_cores,
    }


def _resources(made: MadeTrial) -> Iterable[dict[str, Any]]:
    """Four microseconds a message for a client, one for a broker; on top what its coordination operations take."""
    operations = sum(count for _, count in _operations(made))
    for one in windows(made):
        used = [(client, f"{client}-0", made.messages * 4e-6) for client in _ROLES[one.window]]
        used.append(("broker", "broker-1", made.messages * 1e-6 + operations * CLIENT_CPU_S))
        if made.architecture.startswith("zookeeper"):
            used.append(("coordinator", "zookeeper", operations * SERVER_CPU_S))
        for role, node, cpu_s in used:
            yield {
                "role": role,
                "node": node,
                "number": one.number,
                "window": one.window,
                "wall_s": one.longest_s,
                "cpu_user_s": cpu_s * 0.75,
                "cpu_system_s": cpu_s * 0.25,
                "rss_max_bytes": 64 << 20,
                "written_bytes": made.messages * made.message_size,
                "received_bytes": None if role == "coordinator" else made.messages * made.message_size,
                "sent_bytes": None if role == "coordinator" else made.messages * made.message_size,
                "gc_pause_s": 0.01 if role == "coordinator" else None,
                "coordination_cpu_s": operations * CLIENT_CPU_S if role == "broker" else None,
            }


def _operations(made: MadeTrial) -> list[tuple[str, int]]:
    """Of each window, what was done to coordinate, and how often."""
    requests = made.messages // made.batch_size
    done = {"zookeeper": ("lookup", "commit"), "zookeeper-watch": ("commit",), "dsbs": ("push",)}
    count = requests if made.architecture == "zookeeper" else 1
    return [(operation, count) for operation in done.get(made.architecture, ())]


def _coordination(made: MadeTrial) -> Iterable[dict[str, Any]]:
    for one in windows(made):
        for operation, count in _operations(made):
            yield {
                "node": "broker-1",
                "number": one.number,
                "window": one.window,
                "operation": operation,
                "count": count,
                "bytes": count * 100,
                "wait_s": count * WAIT_S,
            }


def _broker_requests(made: MadeTrial) -> Iterable[dict[str, Any]]:
    for one in windows(made):
        for client in _ROLES[one.window]:
            yield {
                "node": "broker-1",
                "number": one.number,
                "window": one.window,
                "operation": "produce" if client == "producer" else "fetch",
                "requests": made.messages // made.batch_size,
                "messages": made.messages,
                "bytes": made.messages * made.message_size,
            }


def request_table(made: MadeTrial) -> pa.Table:
    """`rows` requests for each window and role, evenly spaced, the first sent and the last done at its ends."""
    return pa.concat_tables(
        [_role_table(made, one, role, length_s) for one in windows(made) for role, length_s in one.lengths_s.items()]
    )


def _role_table(made: MadeTrial, one: MadeWindow, role: str, length_s: float) -> pa.Table:
    rows, window_ns = made.rows, round(length_s * 1e9)
    step = window_ns // rows
    sent = one.start_ns + np.arange(rows, dtype=np.int64) * step
    spread = np.random.default_rng(made.try_).lognormal(np.log(max(step, 2) / 4), 0.5, rows)
    done = sent + np.clip(spread.astype(np.int64), 1, max(step, 1))
    done[-1] = one.start_ns + window_ns
    messages = np.full(rows, made.messages // rows, dtype=np.int64)
    messages[-1] += made.messages - messages.sum()
    requests = max(1, made.messages // made.batch_size // rows)
    took = [results.bucket_of(int(ns)) for ns in done - sent]
    columns = {
        "trial_id": [made.trial_id] * rows,
        "role": [role] * rows,
        "client": np.zeros(rows, np.int32),
        "window_number": np.full(rows, one.number, np.int32),
        "partition": (np.arange(rows) % 3).astype(np.int32),
        "requests": np.full(rows, requests, np.int32),
        "messages": messages,
        "bytes": messages * made.message_size,
        "sent_ns": sent,
        "done_ns": done,
        "status": ["ok"] * rows,
        # A slice of several requests brings a histogram: here, as if all of them had taken as long.
        "latency_index": [[bucket] for bucket in took] if requests > 1 else [[]] * rows,
        "latency_count": [[requests]] * rows if requests > 1 else [[]] * rows,
    }
    return pa.table(columns, schema=results.request_schema())


def latency_rows(made: MadeTrial) -> list[dict[str, Any]]:
    """End to end: half of the messages after 1 ms, all but one in a hundred by 2 ms, the last at 10 ms."""
    n = made.messages
    counts = {1_000_000: n // 2, 2_000_000: n - n // 2 - n // 100, 10_000_000: n // 100}
    return [
        {
            "trial_id": made.trial_id,
            "client": 0,
            "window_number": one.number,
            "kind": "end_to_end",
            "latency_index": [results.bucket_of(ns) for ns in counts],
            "latency_count": list(counts.values()),
        }
        for one in windows(made)
        if "consumer" in one.lengths_s
    ]


def write(folder: Path, trials: Iterable[MadeTrial]) -> Path:
    """Write these trials as a run's raw records, and return the folder."""
    into = results.ResultsFolder(folder)
    for made in trials:
        into.write_trial(trial_row(made), request_table(made), latency_rows(made))
    return folder


def manifest(**changed: Any) -> dict[str, Any]:
    """What a run says of itself, as far as it is read back."""
    return {
        "schema_version": results.SCHEMA_VERSION, "spec_hash": SPEC_HASH, "profile": "made", "started": "",
        "ended": None, "planned": [], "sizes": {}, **changed,
    }  # fmt: skip


def whole_run(rows: int = 2_000, tries: int = 3, seed: int = 2017) -> list[MadeTrial]:
    """The steady profile's cells for every architecture, with a speed for each and 3 % of noise."""
    noise = random.Random(seed)
    speed = {"zookeeper": 0.25, "zookeeper-watch": 0.9, "dsbs": 0.93, "static": 1.0, "static-again": 1.0}
    axes = [(size, 20) for size in (8, 16, 32, 64, 128)] + [(32, 1), (32, 50)]
    made = []
    for number in range(1, tries + 1):
        for architecture in ARCHITECTURES:
            for size, batch in axes:
                for mode in ("split", "streaming"):
                    rps = 400_000 * (1 - size / 400) * batch**0.6 / 6 * speed[architecture]
                    rps *= 0.8 if mode == "streaming" else 1
                    made.append(
                        MadeTrial(
                            architecture,
                            production_s=noise.gauss(1, 0.03),
                            consumption_s=noise.gauss(0.8, 0.03),
                            message_size=size,
                            batch_size=batch,
                            mode=mode,
                            try_=number,
                            messages=round(rps),
                            rows=rows,
                        )
                    )
    return made


def small_run() -> list[MadeTrial]:
    """Two sizes and two batch sizes, two modes, three tries of three architectures; one trial of them is invalid."""
    speed = {"zookeeper": 100_000.0, "dsbs": 200_000.0, "static": 250_000.0}
    made = []
    for number in (1, 2, 3):
        for name, rps in speed.items():
            for size, batch in ((8, 20), (32, 20), (32, 1)):
                for mode in ("split", "streaming"):
                    broken = (name, number, size, batch, mode) == ("dsbs", 2, 8, 20, "split")
                    made.append(
                        MadeTrial(
                            name,
                            production_s=30_000 / rps * (1 + number / 100),
                            consumption_s=30_000 / rps * (1 - number / 100),
                            message_size=size,
                            batch_size=batch,
                            mode=mode,
                            try_=number,
                            columns={"verdict": "invalid", "reason": "stored 29999 of 30000"} if broken else {},
                        )
                    )
    return made


def rounds_run() -> list[MadeTrial]:
    """Timed windows in rounds, three blocks, four names of three architectures, and two loads.

    One trial's windows are disturbed, and those of zookeeper in streaming hold too few messages.
    """
    speed = {"zookeeper": 60_000.0, "dsbs": 120_000.0, "static": 150_000.0, "static-again": 150_000.0}
    noise = random.Random(7)
    made = []
    for number in (1, 2, 3):
        for name, rps in speed.items():
            for mode in ("split", "streaming"):
                few = (name, mode) == ("zookeeper", "streaming")
                disturbed = (name, mode, number) == ("dsbs", "split", 3)
                made.append(
                    MadeTrial(
                        name,
                        production_s=noise.gauss(0.45, 0.009),
                        consumption_s=noise.gauss(0.45, 0.009),
                        message_size=32,
                        mode=mode,
                        try_=number,
                        messages=900 if few else round(rps * 0.45),
                        rows=90,
                        rounds=2,
                        lead_s=0.1,
                        foreign_cores=0.3 if disturbed else 0.02,
                    )
                )
            made += [_loaded(name, share, number) for share in (0.3, 0.6)]
    return made


def _loaded(name: str, share: float, number: int) -> MadeTrial:
    """A trial at a share of 50,000 messages/s."""
    return MadeTrial(
        name, 0.5, 0.5, 32, 20, "load", f"load={share:g}", number, messages=round(25_000 * share), rows=100,
        rounds=2, lead_s=0.1, columns={"load": share, "rate": 50_000 * share},
    )  # fmt: skip


def foreign_run() -> list[MadeTrial]:
    """Brokerlab's static and dsbs beside a system that counts nothing but messages and its clients' processor time."""
    silent: dict[str, Any] = dict.fromkeys(("stored", "coordination", "broker_requests", "fsync", "settings"))
    made = []
    for number in (1, 2):
        for name, seconds in (("static", 0.5), ("dsbs", 0.6), ("kafka-kraft", 0.4)):
            for mode in ("split", "streaming"):
                trial = MadeTrial(name, seconds * (1 + number / 100), seconds, 32, 20, mode, try_=number)
                made.append(replace(trial, columns=silent | _of_kafka(trial)) if name == "kafka-kraft" else trial)
    return made


def _of_kafka(made: MadeTrial) -> dict[str, Any]:
    """The processes of another system: its brokers are somewhere else, so that nothing of them is known."""
    unknown = ("cpu_user_s", "cpu_system_s", "rss_max_bytes", "written_bytes", "received_bytes", "sent_bytes")
    empty: dict[str, Any] = dict.fromkeys((*unknown, "gc_pause_s", "coordination_cpu_s"))
    resources = [row | (empty if row["role"] == "broker" else {}) for row in _resources(made)]
    return {"system": "kafka", "resources": resources}


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0])
    write(folder, whole_run(rows=int(arguments[1]) if len(arguments) > 1 else 2_000))


if __name__ == "__main__":
    main(sys.argv[1:])

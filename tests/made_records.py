"""Synthetic raw records with known answers, written by `workloads.results` as a run would write them.

`python -m tests.made_records DIR` makes a whole run: four architectures, fourteen cells, three blocks.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from workloads import results

ARCHITECTURES = ("zookeeper", "zookeeper-watch", "dsbs", "static")
SPEC_HASH = "made"
START_NS = 1_000_000_000
# Of one coordination operation: how long a request waited for it, and the processor time of both ends.
WAIT_S, CLIENT_CPU_S, SERVER_CPU_S = 500e-6, 120e-6, 60e-6


@dataclass(frozen=True, slots=True)
class MadeTrial:
    """One trial: what it was, and the two windows that its request rows will have."""

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
    columns: Mapping[str, Any] = field(default_factory=dict)  # overrides of the trial's row

    @property
    def cell(self) -> str:
        axes = f"message_size={self.message_size},batch_size={self.batch_size},mode={self.mode}"
        return f"{axes},{self.others}" if self.others else axes

    @property
    def trial_id(self) -> str:
        return self.name or f"{self.cell}/{self.architecture}/{self.try_}"


def window_s(rps: float, messages: int = 30_000) -> float:
    """The window that gives `messages` at this rate."""
    return messages / rps


def trial_row(made: MadeTrial) -> dict[str, Any]:
    """The row in trials/; every cost is so many microseconds or operations a message, by architecture."""
    n = made.messages
    row: dict[str, Any] = {
        "schema_version": results.SCHEMA_VERSION,
        "spec_hash": SPEC_HASH,
        "trial_id": made.trial_id,
        "kind": made.kind,
        "cell": made.cell,
        "experiments": ["made"],
        "architecture": made.architecture,
        "architecture_rank": ARCHITECTURES.index(made.architecture) if made.architecture in ARCHITECTURES else 9,
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
        "rate": None,
        "topology": "loopback",
        "rtt_ms": "0",
        "messages": n,
        "to_consume": n,
        "sent": n,
        "acknowledged": n,
        "stored": n,
        "consumed": n,
        "create_topic_s": 0.02,
        "connect_s": 0.01,
        "join_s": 0.3,
        "verdict": "valid",
        "reason": "",
        "resources": list(_resources(made)),
        "coordination": list(_coordination(made)),
        "broker_requests": list(_broker_requests(made)),
    }
    return row | dict(made.columns)


def _windows(made: MadeTrial) -> list[tuple[str, tuple[str, ...], float]]:
    """Name, clients at work and length: streaming has one window in which both are."""
    if made.mode == "streaming":
        return [("both", ("producer", "consumer"), max(made.production_s, made.consumption_s))]
    return [("production", ("producer",), made.production_s), ("consumption", ("consumer",), made.consumption_s)]


def _resources(made: MadeTrial) -> Iterable[dict[str, Any]]:
    """Four microseconds a message for a client, one for a broker; on top what its coordination operations take."""
    operations = sum(count for _, count in _operations(made))
    for window, clients, wall_s in _windows(made):
        used = [(client, f"{client}-0", made.messages * 4e-6) for client in clients]
        used.append(("broker", "broker-1", made.messages * 1e-6 + operations * CLIENT_CPU_S))
        if made.architecture.startswith("zookeeper"):
            used.append(("coordinator", "zookeeper", operations * SERVER_CPU_S))
        for role, node, cpu_s in used:
            yield {
                "role": role,
                "node": node,
                "window": window,
                "wall_s": wall_s,
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
    for window, _, _ in _windows(made):
        for operation, count in _operations(made):
            yield {
                "node": "broker-1",
                "window": window,
                "operation": operation,
                "count": count,
                "bytes": count * 100,
                "wait_s": count * WAIT_S,
            }


def _broker_requests(made: MadeTrial) -> Iterable[dict[str, Any]]:
    for window, clients, _ in _windows(made):
        for client in clients:
            yield {
                "node": "broker-1",
                "window": window,
                "operation": "produce" if client == "producer" else "fetch",
                "requests": made.messages // made.batch_size,
                "messages": made.messages,
                "bytes": made.messages * made.message_size,
            }


def request_table(made: MadeTrial) -> pa.Table:
    """`rows` requests for each role, evenly spaced, the first sent and the last done at the ends of the window."""
    windows = (("producer", made.production_s), ("consumer", made.consumption_s))
    return pa.concat_tables([_role_table(made, client, wall_s) for client, wall_s in windows])


def _role_table(made: MadeTrial, role: str, wall_s: float) -> pa.Table:
    rows, window_ns = made.rows, round(wall_s * 1e9)
    step = window_ns // rows
    sent = START_NS + np.arange(rows, dtype=np.int64) * step
    spread = np.random.default_rng(made.try_).lognormal(np.log(max(step, 2) / 4), 0.5, rows)
    done = sent + np.clip(spread.astype(np.int64), 1, max(step, 1))
    done[-1] = START_NS + window_ns
    messages = np.full(rows, made.messages // rows, dtype=np.int64)
    messages[-1] += made.messages - messages.sum()
    requests = max(1, made.messages // made.batch_size // rows)
    took = [results.bucket_of(int(ns)) for ns in done - sent]
    columns = {
        "trial_id": [made.trial_id] * rows,
        "role": [role] * rows,
        "client": np.zeros(rows, np.int32),
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
            "kind": "end_to_end",
            "latency_index": [results.bucket_of(ns) for ns in counts],
            "latency_count": list(counts.values()),
        }
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


def calibrations(tries: int, spread: float = 1.0) -> list[MadeTrial]:
    """The two calibration trials of every block, the second slower by `spread`."""
    return [
        MadeTrial(
            "static",
            production_s=1.0 * (spread if place == "close" else 1),
            try_=number,
            kind="calibration",
            name=f"calibration/{number}/{place}",
        )
        for number in range(1, tries + 1)
        for place in ("open", "close")
    ]


def whole_run(rows: int = 2_000, tries: int = 3, seed: int = 2017) -> list[MadeTrial]:
    """The steady profile's cells for every architecture, with a speed for each and 3 % of noise."""
    noise = random.Random(seed)
    speed = {"zookeeper": 0.25, "zookeeper-watch": 0.9, "dsbs": 0.93, "static": 1.0}
    axes = [(size, 20) for size in (8, 16, 32, 64, 128)] + [(32, 1), (32, 50)]
    made = calibrations(tries)
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
    made = calibrations(3)
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


def foreign_run() -> list[MadeTrial]:
    """Brokerlab's static and dsbs beside a system that counts nothing but messages and its clients' processor time."""
    silent: dict[str, Any] = dict.fromkeys(("stored", "coordination", "broker_requests", "fsync"))
    made = calibrations(2)
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

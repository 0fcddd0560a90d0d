"""One trial on a running cluster: topic, clients, timed windows, audit, and the row that is written of it."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import asdict, dataclass, field
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from workloads.audit import Counts, audit
from workloads.drivers.api import STORAGE_FAILED, ConsumeJob, DriverError, ProduceJob
from workloads.observations import Ids, read_ids, read_requests
from workloads.processes import Process
from workloads.resources import Usage, reset_peak, usage_of
from workloads.results import SCHEMA_VERSION

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from workloads.cluster import Client, Cluster
    from workloads.drivers.api import Admin, BrokerStatistics
    from workloads.plan import Plan, Trial
    from workloads.runner import Outcome

T = TypeVar("T")

PRODUCTION: Final = "production"
CONSUMPTION: Final = "consumption"
BOTH: Final = "both"  # streaming: producers and consumers in one window


@dataclass(slots=True)
class Measured:
    """What a trial has gathered so far; a trial that fails keeps what it had."""

    create_topic_s: float | None = None
    connect_s: float | None = None
    join_s: float | None = None
    produced: list[dict[str, Any]] = field(default_factory=list)
    consumed: list[dict[str, Any]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    coordination: list[dict[str, Any]] = field(default_factory=list)
    broker_requests: list[dict[str, Any]] = field(default_factory=list)

    def sent(self) -> int:
        return sum(part["sent"] for part in self.produced)

    def acknowledged(self) -> int:
        return sum(part["acknowledged"] for part in self.produced)

    def rates(self) -> tuple[float, float]:
        """Messages/s produced and consumed, for the progress line and the sizing of later trials."""
        window_p = max((part["window_s"] for part in self.produced), default=0.0)
        window_c = max((part["window_s"] for part in self.consumed), default=0.0)
        consumed = sum(part["consumed"] for part in self.consumed)
        return self.acknowledged() / window_p if window_p else 0.0, consumed / window_c if window_c else 0.0


class TrialRun:
    """A trial under way. `measured` is what `run` has gathered, however far it came; `stage` is where it is."""

    def __init__(
        self,
        trial: Trial,
        messages: int | None,  # None for as many as the trial's time takes
        cluster: Cluster,
        clients: Sequence[Client],
        admin: Admin,
        work: Path,
    ) -> None:
        self.trial = trial
        self.measured = Measured()
        self.stage = "making the topic"
        self._messages = messages
        self._cluster = cluster
        self._admin = admin
        self._work = work
        self._topic = f"trial-{trial.position}"
        workload = trial.cell.workload
        self._producers = [c for c in clients if c.role == "producer"][: workload.producers]
        self._consumers = [c for c in clients if c.role == "consumer"][: workload.consumers]

    async def run(self) -> tuple[Counts, tuple[str, ...], pa.Table]:
        """Everything from the topic's making to its audit: counts, findings, requests. The topic is gone after it."""
        cell = self.trial.cell
        before = monotonic()
        fetch_max = cell.batch_size if cell.workload.fetch == "batch" else 0
        await self._admin.create_topic(self._topic, cell.cluster.partitions, cell.cluster.replication_factor, fetch_max)
        self.measured.create_topic_s = monotonic() - before
        if cell.mode == "split":
            await self._split()
        else:
            await self._streaming()
        result = await self._audited()
        await self._admin.delete_topic(self._topic)
        return result

    async def _split(self) -> None:
        """Producers alone until all is acknowledged, then consumers alone."""
        await self._connect()
        await self._window(PRODUCTION, self._produce)
        await self._join()
        targets = await self._admin.end_offsets(self._topic)
        await self._window(CONSUMPTION, partial(self._consume, targets))

    async def _streaming(self) -> None:
        """Consumers are there before the first send; both run together."""
        await self._join()
        await self._connect()
        await self._window(BOTH, self._produce_and_consume)

    async def _consume(self, targets: Mapping[int, int]) -> None:
        await self._start_consuming()
        await self._finish_consuming(targets)

    async def _produce_and_consume(self) -> None:
        await self._start_consuming()
        await self._produce()
        await self._finish_consuming(await self._admin.end_offsets(self._topic))

    async def _connect(self) -> None:
        self.stage = "connecting the producers"
        for number, client in enumerate(self._producers):
            await client.tell(produce=asdict(self._produce_job(number)))
        self.measured.connect_s = max([await client.hear("ready") for client in self._producers])

    async def _produce(self) -> None:
        self.stage = "producing"
        for client in self._producers:
            await client.tell(go=True)
        self.measured.produced = [await client.hear("done") for client in self._producers]
        unstored = sum(part["failed"].get(STORAGE_FAILED, 0) for part in self.measured.produced)
        if unstored:
            free = shutil.disk_usage(self._work).free // 1024**2
            raise DriverError(f"{unstored} messages could not be stored; {free:,} MiB are free in {self._work}")

    async def _join(self) -> None:
        self.stage = "joining the consumers"
        for number, client in enumerate(self._consumers):
            await client.tell(consume=asdict(self._consume_job(number)))
        self.measured.join_s = max([await client.hear("ready") for client in self._consumers])

    async def _start_consuming(self) -> None:
        for client in self._consumers:
            await client.tell(go=True)
        for client in self._consumers:
            await client.hear("started")

    async def _finish_consuming(self, targets: Mapping[int, int]) -> None:
        """Tell the consumers where the topic ends, now that it does, and wait until they are there."""
        self.stage = "consuming"
        for client in self._consumers:
            await client.tell(targets=targets)
        self.measured.consumed = [await client.hear("done") for client in self._consumers]

    def _produce_job(self, number: int) -> ProduceJob:
        cell, workload = self.trial.cell, self.trial.cell.workload
        return ProduceJob(
            driver=workload.driver,
            bootstrap=self._bootstrap(),
            topic=self._topic,
            partitions=cell.cluster.partitions,
            producer=number,
            messages=None if self._messages is None else share(self._messages, workload.producers, number),
            duration_s=self.trial.length.duration_s if self._messages is None else None,
            message_size=cell.message_size,
            batch_size=cell.batch_size,
            acks=cell.cluster.acks,
            rate=None if workload.rate is None else workload.rate / workload.producers,
            out=str(self._out("producer", number)),
        )

    def _consume_job(self, number: int) -> ConsumeJob:
        cell, workload = self.trial.cell, self.trial.cell.workload
        return ConsumeJob(
            driver=workload.driver,
            bootstrap=self._bootstrap(),
            topic=self._topic,
            partitions=tuple(range(number, cell.cluster.partitions, workload.consumers)),
            consumer=number,
            group=f"group-{self._topic}",
            message_size=cell.message_size,
            batch_size=cell.batch_size,
            fetch=workload.fetch,
            commit=workload.commit,
            commit_interval_ms=workload.commit_interval_ms,
            out=str(self._out("consumer", number)),
        )

    def _bootstrap(self) -> tuple[str, ...]:
        grpc = self.trial.cell.workload.driver == "grpc"
        return tuple(self._cluster.rpc_addresses if grpc else self._cluster.kafka_addresses)

    def _out(self, role: str, number: int) -> Path:
        return self._work / f"{role}-{number}"

    # --- what a window costs ------------------------------------------------------------------------------

    async def _window(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` between two readings of every counter; what the clients write down of it comes behind them."""
        for _, process in self._watched().values():
            await _read_of(process, reset_peak)
        earlier, before = await self._admin.statistics(), await self._usage()
        start = monotonic()
        await work()
        wall_s = monotonic() - start
        after, later = await self._usage(), await self._admin.statistics()
        self._note_resources(name, wall_s, before, after)
        self._note_statistics(name, earlier, later)
        await self._keep(name)

    async def _keep(self, window: str) -> None:
        """Let the clients whose work is over write it down."""
        of_window = {PRODUCTION: self._producers, CONSUMPTION: self._consumers}
        clients = of_window.get(window, [*self._producers, *self._consumers])
        for client in clients:
            await client.tell(keep=True)
        for client in clients:
            await client.hear("kept")

    def _watched(self) -> dict[str, tuple[str, Process]]:
        clients = {client.name: (client.role, client.process) for client in (*self._producers, *self._consumers)}
        return {**self._cluster.processes, **clients}

    async def _usage(self) -> dict[str, Usage]:
        return {name: await _read_of(process, usage_of) for name, (_, process) in self._watched().items()}

    def _note_resources(
        self, window: str, wall_s: float, before: Mapping[str, Usage], after: Mapping[str, Usage]
    ) -> None:
        for name, (role, _) in self._watched().items():
            spent = {"role": role, "node": name, "window": window, "wall_s": wall_s}
            self.measured.resources.append({**spent, **asdict(after[name].since(before[name]))})

    def _note_statistics(
        self, window: str, before: Sequence[BrokerStatistics], after: Sequence[BrokerStatistics]
    ) -> None:
        for later in after:
            earlier = next(statistics for statistics in before if statistics.broker == later.broker)
            node = {"node": f"broker-{later.broker}", "window": window}
            for operation, (count, size, wait_ns) in _grown(later.coordination, earlier.coordination):
                row = {"operation": operation, "count": count, "bytes": size, "wait_s": wait_ns / 1e9}
                self.measured.coordination.append({**node, **row})
            for operation, (requests, messages, size) in _grown(later.operations, earlier.operations):
                row = {"operation": operation, "requests": requests, "messages": messages, "bytes": size}
                self.measured.broker_requests.append({**node, **row})

    # --- truth --------------------------------------------------------------------------------------------

    async def _audited(self) -> tuple[Counts, tuple[str, ...], pa.Table]:
        self.stage = "auditing"
        stored = await self._stored()
        producers = [self._out("producer", number) for number in range(len(self._producers))]
        consumers = [self._out("consumer", number) for number in range(len(self._consumers))]
        result = await asyncio.to_thread(
            audit,
            self.measured.sent(),
            _joined([read_ids(out) for out in producers]),
            stored,
            _joined([read_ids(out) for out in consumers]),
            sum(part["wrong_payloads"] for part in self.measured.consumed),
        )
        failures = [
            f"{count} messages: {why}" for part in self.measured.produced for why, count in part["failed"].items()
        ]
        if self._messages is not None and self._messages != result.counts.sent:
            failures.append(f"{result.counts.sent} messages were sent, not {self._messages}")
        requests = read_requests([*producers, *consumers], self.trial.id)
        return result.counts, (*failures, *result.findings), requests

    async def _stored(self) -> dict[int, Ids]:
        """Read each partition's log from its leader's disk, with the brokers' own reader in a process apart."""
        leaders = await self._admin.leaders(self._topic)
        out = self._work / "stored"
        folders = {
            number: self._cluster.partition_folder(leader, self._topic, number) for number, leader in leaders.items()
        }
        arguments = [f"{number}={folder}" for number, folder in sorted(folders.items())]
        command = [sys.executable, "-m", "brokers.readback", "--out", str(out.with_suffix(".npz")), *arguments]
        reader = await Process.start("log reader", command, self._work / "stored.log")
        try:
            await reader.ended()
        finally:
            await reader.stop()
        failure = reader.failure()
        if failure.code != 0:
            raise failure
        return read_ids(out)


def trial_row(plan: Plan, trial: Trial, messages: int | None, measured: Measured, outcome: Outcome) -> dict[str, Any]:
    """The row in `trials/`, whatever came of the trial."""
    cell = trial.cell
    known = outcome.counts or Counts(measured.sent(), measured.acknowledged(), 0, 0)
    return {
        "schema_version": SCHEMA_VERSION,
        "spec_hash": plan.spec_hash,
        "trial_id": trial.id,
        "kind": trial.kind,
        "cell": cell.id,
        "experiments": list(cell.experiments),
        "architecture": trial.architecture.name,
        "architecture_rank": _rank(plan, trial),
        "try": trial.block,
        "position": trial.position,
        "mode": cell.mode,
        "message_size": cell.message_size,
        "batch_size": cell.batch_size,
        **_held_equal(trial),
        "messages": messages if messages is not None else known.sent,
        **asdict(known),
        "create_topic_s": measured.create_topic_s,
        "connect_s": measured.connect_s,
        "join_s": measured.join_s,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "resources": measured.resources,
        "coordination": measured.coordination,
        "broker_requests": measured.broker_requests,
    }


def share(total: int, parts: int, number: int) -> int:
    """How many of `total` fall to one of `parts`, as even as whole numbers go."""
    return total // parts + (number < total % parts)


def _held_equal(trial: Trial) -> dict[str, Any]:
    cell = trial.cell
    axes = {**cell.cluster.as_axes(), **cell.workload.as_axes()}
    return {
        **{name: axes[name] for name in ("driver", "fsync", "commit", "fetch")},
        "brokers": cell.cluster.brokers,
        "partitions": cell.cluster.partitions,
        "replication_factor": cell.cluster.replication_factor,
        "acks": cell.cluster.acks,
        "producers": cell.workload.producers,
        "consumers": cell.workload.consumers,
        "rate": cell.workload.rate,
    }


async def _read_of(process: Process, read: Callable[[int], T]) -> T:
    """What /proc says of a process. Raises `ProcessFailed` where it has ended."""
    try:
        return read(process.pid)
    except ProcessLookupError:
        await process.ended()
        raise process.failure() from None


def _rank(plan: Plan, trial: Trial) -> int:
    names = [architecture.name for architecture in plan.architectures]
    return names.index(trial.architecture.name) if trial.architecture.name in names else len(names)


def _grown(
    later: Mapping[str, tuple[int, int, int]], earlier: Mapping[str, tuple[int, int, int]]
) -> list[tuple[str, tuple[int, int, int]]]:
    """What was added to each counter; the ones that did not move are left out."""
    found = []
    for name, (a, b, c) in later.items():
        x, y, z = earlier.get(name, (0, 0, 0))
        if (a, b, c) != (x, y, z):
            found.append((name, (a - x, b - y, c - z)))
    return found


def _joined(parts: Sequence[Mapping[int, Ids]]) -> dict[int, Ids]:
    import numpy as np

    partitions = sorted({partition for part in parts for partition in part})
    return {p: np.concatenate([part[p] for part in parts if p in part]) for p in partitions}

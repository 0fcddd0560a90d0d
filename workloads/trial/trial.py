"""One trial on a running cluster: topic, clients, timed windows, audit, and the row that is written of it."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from workloads.checkers.audit import Counts, audit
from workloads.clients.client_files import Ids, read_ids, read_requests
from workloads.clients.drivers.api import STORAGE_FAILED, ConsumeJob, DriverError, ProduceJob
from workloads.measure.end_to_end import end_to_end
from workloads.measure.metering import Costs, Meter
from workloads.results import SCHEMA_VERSION
from workloads.systems.read_back import read_back

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from workloads.clients.process import Client
    from workloads.run.runner import Outcome
    from workloads.spec.plan import Plan, Trial
    from workloads.systems.api import System

T = TypeVar("T")

PRODUCTION: Final = "production"
CONSUMPTION: Final = "consumption"
# A producer gives up on a message before the trial is given up, so that the trial can say why.
ANSWER_SHARE: Final = 0.75
ANSWER_WITHIN_MIN_S: Final = 1.0
BOTH: Final = "both"  # streaming: producers and consumers in one window


@dataclass(frozen=True, slots=True)
class Size:
    """How long a trial is, in messages."""

    messages: int
    to_consume: int  # at least


@dataclass(slots=True)
class Measured:
    """What a trial has gathered so far; a trial that fails keeps what it had."""

    create_topic_s: float | None = None
    connect_s: float | None = None
    join_s: float | None = None
    windows_s: float = 0.0
    audit_s: float = 0.0
    produced: list[dict[str, Any]] = field(default_factory=list)
    consumed: list[dict[str, Any]] = field(default_factory=list)
    costs: Costs = field(default_factory=Costs)

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


class Result(NamedTuple):
    counts: Counts
    findings: tuple[str, ...]
    requests: pa.Table | None
    latency: Sequence[Mapping[str, Any]] = ()


class TrialRun:
    """A trial under way. `measured` is what `run` has gathered, however far it came; `stage` is where it is."""

    def __init__(
        self,
        trial: Trial,
        size: Size | None,  # None for as many as the trial's time takes
        system: System,
        clients: Sequence[Client],
        work: Path,
        timeout_s: float,
    ) -> None:
        self.trial = trial
        self.measured = Measured()
        self.stage = "making the topic"
        self._size = size
        self._targets: Mapping[int, int] = {}
        self._system = system
        self._work = work
        self._answer_within_s = max(ANSWER_WITHIN_MIN_S, ANSWER_SHARE * timeout_s)
        self._topic = f"trial-{trial.position}"
        workload = trial.cell.workload
        self._producers = [c for c in clients if c.role == "producer"][: workload.producers]
        self._consumers = [c for c in clients if c.role == "consumer"][: workload.consumers]

    async def run(self) -> Result:
        """Everything from the topic's making to its audit. The topic is gone after it."""
        cell = self.trial.cell
        before = monotonic()
        fetch_max = cell.batch_size if cell.workload.fetch == "batch" else 0
        await self._system.create_topic(
            self._topic, cell.cluster.partitions, cell.cluster.replication_factor, fetch_max
        )
        self.measured.create_topic_s = monotonic() - before
        if cell.mode == "split":
            await self._split()
        else:
            await self._streaming()
        result = await self._audited() if self._size else self._unaudited()
        await self._system.delete_topic(self._topic)
        return result

    async def _split(self) -> None:
        """Producers alone until all is acknowledged, then consumers alone."""
        await self._begin_connecting()
        await self._connected()
        await self._window(PRODUCTION, self._produce)
        await self._join()
        await self._aim()
        await self._window(CONSUMPTION, self._consume)

    async def _streaming(self) -> None:
        """Consumers are there before the first send; both run together."""
        await self._begin_connecting()  # beside the joining
        await self._join()
        await self._connected()
        await self._window(BOTH, self._produce_and_consume)

    async def _consume(self) -> None:
        await self._start_consuming()
        await self._finish_consuming()

    async def _produce_and_consume(self) -> None:
        await self._start_consuming()
        await self._produce()
        await self._aim()
        await self._finish_consuming()

    async def _aim(self) -> None:
        """Find how far each partition is to be consumed, now that all is stored."""
        ends = await self._system.end_offsets(self._topic)
        total = sum(ends.values())
        wanted = total if self._size is None else min(total, self._size.to_consume)
        self._targets = {partition: -(-end * wanted // max(1, total)) for partition, end in ends.items()}

    async def _begin_connecting(self) -> None:
        for number, client in enumerate(self._producers):
            await client.tell(produce=asdict(self._produce_job(number)))

    async def _connected(self) -> None:
        self.stage = "connecting the producers"
        self.measured.connect_s = max([(await client.hear("ready"))["seconds"] for client in self._producers])

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
        """Let the consumers join, and go on when each partition is the matter of one of them for good."""
        self.stage = "joining the consumers"
        for number, client in enumerate(self._consumers):
            await client.tell(consume=asdict(self._consume_job(number)))
        for client in self._consumers:
            await client.hear("joined")
        for client in self._consumers:
            await client.tell(all_joined=True)
        ready = [await client.hear("ready") for client in self._consumers]
        refuse_shares(self.trial.cell.cluster.partitions, [part["partitions"] for part in ready])
        self.measured.join_s = max(part["seconds"] for part in ready)

    async def _start_consuming(self) -> None:
        for client in self._consumers:
            await client.tell(go=True)
        for client in self._consumers:
            await client.hear("started")

    async def _finish_consuming(self) -> None:
        """Tell the consumers how far they are to come, and wait until they are there."""
        self.stage = "consuming"
        for client in self._consumers:
            await client.tell(targets=self._targets)
        self.measured.consumed = [await client.hear("done") for client in self._consumers]

    def _produce_job(self, number: int) -> ProduceJob:
        cell, workload = self.trial.cell, self.trial.cell.workload
        return ProduceJob(
            driver=workload.driver,
            bootstrap=tuple(self._system.bootstrap(workload.driver)),
            topic=self._topic,
            partitions=cell.cluster.partitions,
            producer=number,
            messages=None if self._size is None else share(self._size.messages, workload.producers, number),
            duration_s=self._duration_s(),
            message_size=cell.message_size,
            batch_size=cell.batch_size,
            acks=cell.cluster.acks,
            rate=None if workload.rate is None else workload.rate / workload.producers,
            out=str(self._out("producer", number)),
            answer_within_s=self._answer_within_s,
        )

    def _consume_job(self, number: int) -> ConsumeJob:
        cell, workload = self.trial.cell, self.trial.cell.workload
        return ConsumeJob(
            driver=workload.driver,
            bootstrap=tuple(self._system.bootstrap(workload.driver)),
            topic=self._topic,
            partitions=tuple(range(number, cell.cluster.partitions, workload.consumers)),
            consumer=number,
            group=f"group-{self._topic}",
            message_size=cell.message_size,
            batch_size=cell.batch_size,
            fetch=workload.fetch,
            commit=workload.commit,
            commit_interval_ms=workload.commit_interval_ms,
            duration_s=self._duration_s(),
            out=str(self._out("consumer", number)),
            end_to_end=cell.mode == "streaming" and self._size is not None,
        )

    def _duration_s(self) -> float | None:
        return self.trial.length.duration_s if self._size is None else None

    def _out(self, role: str, number: int) -> Path:
        return self._work / f"{role}-{number}"

    # --- what a window costs ------------------------------------------------------------------------------

    async def _window(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` between two readings of every counter; what the clients write down of it comes behind them."""
        clients = {client.name: (client.role, client.process) for client in (*self._producers, *self._consumers)}
        meter = Meter({**self._system.nodes.processes_here, **clients}, self._system)
        await meter.begin()
        start = monotonic()
        await work()
        wall_s = monotonic() - start
        self.measured.windows_s += wall_s
        await meter.end(name, wall_s, self.measured.costs)
        await self._keep(name)

    async def _keep(self, window: str) -> None:
        """Let the clients whose work is over write it down; of a warm-up only the rates are wanted, and they have been
        told."""
        of_window = {PRODUCTION: self._producers, CONSUMPTION: self._consumers}
        clients = of_window.get(window, [*self._producers, *self._consumers])
        for client in clients:
            await client.tell(keep=self._size is not None)
        for client in clients:
            await client.hear("kept")

    # --- truth --------------------------------------------------------------------------------------------

    def _unaudited(self) -> Result:
        """Of a warm-up."""
        return Result(Counts(self.measured.sent(), self.measured.acknowledged(), 0, 0), (), None)

    async def _audited(self) -> Result:
        self.stage = "auditing"
        before = monotonic()
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
            self._targets,
        )
        failures = [
            f"{count} messages: {why}" for part in self.measured.produced for why, count in part["failed"].items()
        ]
        if self._size is not None and self._size.messages != result.counts.sent:
            failures.append(f"{result.counts.sent} messages were sent, not {self._size.messages}")
        requests = read_requests([*producers, *consumers], self.trial.id)
        latency = await asyncio.to_thread(end_to_end, self.trial.id, producers, consumers)
        self.measured.audit_s = monotonic() - before
        return Result(result.counts, (*failures, *result.findings), requests, latency)

    async def _stored(self) -> Mapping[int, Ids]:
        """What the leaders' disks hold; where nobody can read those, what a fetch of everything brings."""
        found = await self._system.stored(self._topic, self._work / "stored")
        if found is not None:
            return found
        ends = await self._system.end_offsets(self._topic)
        return await asyncio.to_thread(read_back, self._system.bootstrap("kafka"), self._topic, ends)


def trial_row(plan: Plan, trial: Trial, size: Size | None, measured: Measured, outcome: Outcome) -> dict[str, Any]:
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
        "messages": size.messages if size else known.sent,
        "to_consume": size.to_consume if size else known.stored,
        **asdict(known),
        "create_topic_s": measured.create_topic_s,
        "connect_s": measured.connect_s,
        "join_s": measured.join_s,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        **asdict(measured.costs),
    }


def refuse_shares(partitions: int, shares: Sequence[Sequence[int]]) -> None:
    """Raise `DriverError` unless every partition is read by one consumer and no more."""
    if sorted(partition for of_one in shares for partition in of_one) != list(range(partitions)):
        raise DriverError(f"the consumers share {partitions} partitions as {', '.join(map(str, shares))}")


def share(total: int, parts: int, number: int) -> int:
    """How many of `total` fall to one of `parts`, as even as whole numbers go."""
    return total // parts + (number < total % parts)


def _held_equal(trial: Trial) -> dict[str, Any]:
    cell = trial.cell
    axes = {**cell.cluster.as_axes(), **cell.workload.as_axes()}
    return {
        **{name: axes[name] for name in ("driver", "fsync", "commit", "fetch", "topology", "rtt_ms")},
        "brokers": cell.cluster.brokers,
        "partitions": cell.cluster.partitions,
        "replication_factor": cell.cluster.replication_factor,
        "acks": cell.cluster.acks,
        "producers": cell.workload.producers,
        "consumers": cell.workload.consumers,
        "rate": cell.workload.rate,
    }


def _rank(plan: Plan, trial: Trial) -> int:
    names = [architecture.name for architecture in plan.architectures]
    return names.index(trial.architecture.name) if trial.architecture.name in names else len(names)


def _joined(parts: Sequence[Mapping[int, Ids]]) -> dict[int, Ids]:
    import numpy as np

    partitions = sorted({partition for part in parts for partition in part})
    return {p: np.concatenate([part[p] for part in parts if p in part]) for p in partitions}

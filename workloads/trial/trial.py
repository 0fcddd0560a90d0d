"""One trial on a running system: its stages, one after the other, with the script's faults where they fall."""

from __future__ import annotations

from functools import partial
from secrets import token_hex
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final, NamedTuple

from workloads.faults.injection import Injection
from workloads.faults.script import AUDIT, BOTH, CONNECT, CONSUMPTION, JOIN, PRODUCTION, TOPIC, Script
from workloads.measure.metering import Meter
from workloads.trial.clients import TrialClients
from workloads.trial.evidence import examine, stored_messages
from workloads.trial.jobs import Jobs
from workloads.trial.record import INVALID, VALID, TrialRecord

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from workloads.clients.drivers.api import BrokerStatistics
    from workloads.clients.process import Client
    from workloads.spec.plan import Trial
    from workloads.systems.api import System
    from workloads.trial.record import Size

NO_FAULTS: Final = Script()


class Stage(NamedTuple):
    """A part of a trial, under the name by which a script means it."""

    name: str
    run: Callable[[], Awaitable[None]]


class TrialRun:
    """A trial under way. `record` has what was gathered so far; `faults` carries out the script."""

    def __init__(
        self,
        trial: Trial,
        size: Size | None,  # None for as many as the trial's time takes
        system: System,
        clients: Sequence[Client],
        work: Path,
        timeout_s: float,
        script: Script = NO_FAULTS,
        *,
        history: bool = False,
    ) -> None:
        """Raises `ScriptRefused` where the script does not fit the trial."""
        self.record = TrialRecord(trial, size)
        self.faults = Injection(script, system)
        self.system = system
        # A cluster that somebody else runs outlives the trial, and others may drive it at the same time.
        self.topic = f"trial-{trial.position}" if system.nodes.names else f"trial-{trial.position}-{token_hex(4)}"
        self._work = work
        self._history = history
        self._targets: Mapping[int, int] = {}
        workload = trial.cell.workload
        bootstrap, tell_every = tuple(system.bootstrap(workload.driver)), script.tell_every(workload.producers)
        jobs = Jobs(trial, size, bootstrap, self.topic, work, timeout_s, history=history, tell_every=tell_every)
        self.clients = TrialClients(clients, jobs, self.record, self.faults.acknowledged)
        script.refuse_unfit([stage.name for stage in self._stages()], system.nodes.names)

    async def run(self) -> None:
        """Everything from the topic's making to its audit. The topic is gone after it."""
        try:
            for stage in self._stages():
                await self.faults.begin(stage.name)
                await stage.run()
        finally:
            self.record.note_steps(self.faults.done)
        await self.system.delete_topic(self.topic)

    def _stages(self) -> list[Stage]:
        """Split: producers alone until all is acknowledged, then consumers alone. Streaming: consumers are there before
        the first send, and both run together. A warm-up is not audited."""
        who = self.clients
        if self.record.trial.cell.mode == "split":
            rounds = [
                Stage(CONNECT, self._connect),
                Stage(PRODUCTION, partial(self._round, PRODUCTION, who.produce, who.producers)),
                Stage(JOIN, self._join),
                Stage(CONSUMPTION, partial(self._round, CONSUMPTION, self._consume, who.consumers)),
            ]
        else:
            rounds = [
                Stage(JOIN, self._join_beside_connecting),
                Stage(CONNECT, who.connected),
                Stage(BOTH, partial(self._round, BOTH, self._produce_and_consume, [*who.producers, *who.consumers])),
            ]
        return [Stage(TOPIC, self._make_topic), *rounds, Stage(AUDIT, self._audit if self.record.size else self._pass)]

    async def _make_topic(self) -> None:
        cell, before = self.record.trial.cell, monotonic()
        fetch_max = cell.batch_size if cell.workload.fetch == "batch" else 0
        await self.system.create_topic(self.topic, cell.cluster.partitions, cell.cluster.replication_factor, fetch_max)
        self.record.create_topic_s = monotonic() - before

    async def _connect(self) -> None:
        await self.clients.begin_connecting()
        await self.clients.connected()

    async def _join(self) -> None:
        await self.clients.join()
        await self._aim()

    async def _join_beside_connecting(self) -> None:
        await self.clients.begin_connecting()
        await self.clients.join()

    async def _consume(self) -> None:
        await self.clients.start_consuming()
        await self.clients.finish_consuming(self._targets)

    async def _produce_and_consume(self) -> None:
        await self.clients.start_consuming()
        await self.clients.produce()
        await self._aim()
        await self.clients.finish_consuming(self._targets)

    async def _aim(self) -> None:
        """Find how far each partition is to be consumed, now that all is stored."""
        ends, size = await self.system.end_offsets(self.topic), self.record.size
        total = sum(ends.values())
        wanted = total if size is None else min(total, size.to_consume)
        self._targets = {partition: -(-end * wanted // max(1, total)) for partition, end in ends.items()}

    async def _round(self, name: str, work: Callable[[], Awaitable[None]], working: Sequence[Client]) -> None:
        """Run `work` between two readings of every counter; what the clients write down of it comes behind them."""
        up = {n: found for n, found in self.system.nodes.processes_here.items() if n not in self.faults.down}
        meter = Meter({**up, **self.clients.processes}, self._statistics)
        await meter.begin()
        began_ns = monotonic_ns()
        async with self.faults.during(name):
            start = monotonic()
            await work()
            wall_s = monotonic() - start
        self.record.windows_s += wall_s
        await meter.end(name, wall_s, self.record.costs, without=self.faults.ended_since(began_ns))
        await self.clients.keep(working)

    async def _statistics(self) -> Sequence[BrokerStatistics]:
        """The brokers' own counters; none while a node is down, for then they cannot all be asked."""
        return () if self.faults.down else await self.system.statistics()

    async def _audit(self) -> None:
        self.record.doing = "auditing"
        before = monotonic()
        stored = await stored_messages(self.system, self.topic, self._work / "stored")
        producers, consumers = self.clients.outs("producer"), self.clients.outs("consumer")
        findings = await examine(self.record, producers, consumers, stored, self._targets, history=self._history)
        missed = [f"the script's step was not carried out: {step}" for step in self.faults.left()]
        self.record.audit_s = monotonic() - before
        self._judge([*findings, *missed])

    async def _pass(self) -> None:
        self._judge(())

    def _judge(self, findings: Sequence[str]) -> None:
        self.record.verdict, self.record.reason = INVALID if findings else VALID, "; ".join(findings)

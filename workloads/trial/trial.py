"""One trial on a running system: its stages and windows, led from outside, because the windows of several trials take
turns. The script's faults fall into the first window of each kind, and before each stage."""

from __future__ import annotations

from contextlib import AsyncExitStack
from secrets import token_hex
from time import monotonic, monotonic_ns
from typing import TYPE_CHECKING, Final

from workloads.faults.injection import Injection
from workloads.faults.script import AUDIT, BOTH, CONNECT, CONSUMPTION, JOIN, PRODUCTION, TOPIC, Script
from workloads.measure.machine import Machine
from workloads.measure.metering import Meter
from workloads.trial.clients import TrialClients
from workloads.trial.evidence import examine, stored_messages
from workloads.trial.jobs import Jobs
from workloads.trial.record import INVALID, UNTIMED, VALID, TrialRecord, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from workloads.clients.drivers.api import BrokerStatistics
    from workloads.clients.process import Client
    from workloads.spec.plan import Trial
    from workloads.systems.api import System
    from workloads.trial.clients import Parts, Work
    from workloads.trial.record import Place

NO_FAULTS: Final = Script()
# What the id of a trial begins with that is not written down.
WARMUP, SUSTAINED = "warmup", "sustained"
UNTIMED_TRIALS: Final = (WARMUP, SUSTAINED)
# The windows of a trial of each mode, in their order.
WINDOWS: Final = {"split": (PRODUCTION, CONSUMPTION), "streaming": (BOTH,), "load": (BOTH,)}


class TrialRun:
    """A trial under way. `record` has what was gathered so far; `faults` carries out the script."""

    def __init__(
        self,
        trial: Trial,
        system: System,
        clients: Sequence[Client],
        work: Path,
        timeout_s: float,
        everybody: Callable[[], Collection[int]] = tuple,
        script: Script = NO_FAULTS,
        *,
        history: bool = False,
    ) -> None:
        """`everybody` tells the pids of all processes of the run. Raises `ScriptRefused` where the script does not fit
        the trial."""
        self.record = TrialRecord(trial, trial.cell.workload.rate)
        self.faults = Injection(script, system)
        self.system = system
        # A cluster that somebody else runs outlives the trial, and others may drive it at the same time.
        self.topic = topic_of(trial) if system.nodes.names else f"{topic_of(trial)}-{token_hex(4)}"
        self.number = UNTIMED  # of the last window
        self._work = work
        self._everybody = everybody
        self._history = history
        self._targets: Mapping[int, int] = {}
        self._joined = False
        self._faulted: set[str] = set()  # kinds of windows whose faults have been put in
        workload = trial.cell.workload
        bootstrap, tell_every = tuple(system.bootstrap(workload.driver)), script.tell_every(workload.producers)
        jobs = Jobs(trial, bootstrap, self.topic, work, timeout_s, history=history, tell_every=tell_every)
        self.clients = TrialClients(clients, jobs, self.record, self.faults.acknowledged)
        script.refuse_unfit([TOPIC, CONNECT, JOIN, *WINDOWS[trial.cell.mode], AUDIT], system.nodes.names)

    # --- stages -------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Make the topic and connect. In split consumers join later, when all is produced; else they are first."""
        await self.faults.begin(TOPIC)
        cell, before = self.record.trial.cell, monotonic()
        fetch_max = cell.batch_size if cell.workload.fetch == "batch" else 0
        await self.system.create_topic(self.topic, cell.cluster.partitions, cell.cluster.replication_factor, fetch_max)
        self.record.create_topic_s = monotonic() - before
        if cell.mode == "split":
            await self.faults.begin(CONNECT)
            await self.clients.begin_connecting()
            await self.clients.connected()
        else:
            await self.faults.begin(JOIN)
            await self.clients.begin_connecting()
            await self._join()
            await self.faults.begin(CONNECT)
            await self.clients.connected()

    async def join(self) -> None:
        await self.faults.begin(JOIN)
        await self._join()

    async def _join(self) -> None:
        await self.clients.join()
        self._joined = True

    async def audit(self) -> None:
        """Let the clients write down what they saw, compare it with what is stored, and delete the topic."""
        await self.faults.begin(AUDIT)
        self.record.doing = "auditing"
        before = monotonic()
        await self.clients.keep(joined=self._joined)
        stored = await stored_messages(self.system, self.topic, self._work / "stored")
        producers = self.clients.outs("producer")
        consumers = self.clients.outs("consumer") if self._joined else []
        findings = await examine(self.record, producers, consumers, stored, self._targets, history=self._history)
        self.record.note_steps(self.faults.done)
        missed = [f"the script's step was not carried out: {step}" for step in self.faults.left()]
        self.record.audit_s = monotonic() - before
        self.record.verdict = INVALID if [*findings, *missed] else VALID
        self.record.reason = "; ".join([*findings, *missed])
        await self.system.delete_topic(self.topic)

    async def forget(self) -> None:
        """End a trial that nobody wants to know more of."""
        await self.clients.keep(joined=self._joined, written=False)
        await self.system.delete_topic(self.topic)

    # --- outside of windows -------------------------------------------------------------------------------

    async def fill(self, messages: int) -> None:
        """Produce for the consumers of later windows."""
        await self._untimed(self.clients.producers, messages)

    async def catch_up(self) -> None:
        """Let the consumers come to the end of what is stored."""
        await self._untimed(self.clients.consumers, targets=await self.system.end_offsets(self.topic))

    async def _untimed(
        self, who: Sequence[Client], messages: int | None = None, targets: Mapping[int, int] | None = None
    ) -> None:
        await self.clients.prepare(who, UNTIMED, messages)
        async with await self.clients.begin(who, targets) as work:
            await work.parts()

    async def warm(self, seconds: float) -> tuple[float, float]:
        """Both ends at once, as fast as they go; the messages/s produced and consumed."""
        who = [*self.clients.producers, *self.clients.consumers]
        await self.clients.prepare(who, UNTIMED)
        async with await self.clients.begin(who) as work:
            await work.lasts(seconds)
            await work.stop()
            return _rate(await work.parts("producer"), "acknowledged"), _rate(await work.parts("consumer"), "consumed")

    # --- windows ------------------------------------------------------------------------------------------

    async def window(self, at: Place, longer: float = 1.0) -> Window | None:
        """Measure, so many times `longer` than asked for. None where consumers came to the end of what is stored before
        the window could close, which tells nothing: it is to be filled, and measured under another number."""
        who = self._who(at.window)
        length = self.record.trial.length
        self.record.doing = f"in its window of {at.window}"
        await self.clients.prepare(who, at.number, length.messages, self.record.rate)
        up = {n: found for n, found in self.system.nodes.processes_here.items() if n not in self.faults.down}
        meter = Meter({**up, **self.clients.processes}, self._statistics)
        await meter.begin()
        machine, began_ns = Machine(self._everybody()), monotonic_ns()
        async with AsyncExitStack() as faults:
            if at.window not in self._faulted:
                self._faulted.add(at.window)
                await self.faults.begin(at.window)
                await faults.enter_async_context(self.faults.during(at.window))
            stretch = await (self._whole(at, who) if length.duration_s is None else self._cut(at, who, longer))
        load = machine.load()
        if stretch is None:
            return None
        self.record.windows_s += load.wall_s
        without = self.faults.ended_since(began_ns)
        await meter.end(at, load.wall_s, self.record.costs, without=without)
        opened_ns, closed_ns = stretch
        found = Window(at, opened_ns, closed_ns, load)
        self.record.windows.append(found)
        return found

    def _who(self, window: str) -> list[Client]:
        ends = {PRODUCTION: self.clients.producers, CONSUMPTION: self.clients.consumers}
        return ends.get(window) or [*self.clients.consumers, *self.clients.producers]

    async def _cut(self, at: Place, who: Sequence[Client], longer: float) -> tuple[int, int] | None:
        """A stretch of time out of the middle of the clients' work."""
        length = self.record.trial.length
        assert length.duration_s is not None, "a window of so many messages is whole"
        targets = await self.system.end_offsets(self.topic) if at.window == CONSUMPTION else None
        async with await self.clients.begin(who, targets) as work:
            lasted = await work.lasts(length.lead_s)
            opened_ns = monotonic_ns()
            lasted = lasted and await work.lasts(length.duration_s * longer)
            closed_ns = monotonic_ns()
            await work.stop()
            await self._note_rates(work)
        return (opened_ns, closed_ns) if lasted else None

    async def _whole(self, at: Place, who: Sequence[Client]) -> tuple[None, None]:
        """From the first message to the last; consumers come as far as was produced."""
        if at.window == CONSUMPTION:
            self._targets = await self._portion(at.round)
        async with await self.clients.begin(who, self._targets if at.window == CONSUMPTION else None) as work:
            if at.window == BOTH:
                await work.parts("producer")
                self._targets = await self.system.end_offsets(self.topic)
                await self.clients.aim(self._targets)
            await self._note_rates(work)
        return None, None

    async def _portion(self, turn: int) -> Mapping[int, int]:
        """How far consumers are to come in this round, which has its equal part of what was produced."""
        rounds = sum(window.at.window == PRODUCTION for window in self.record.windows)
        ends = await self.system.end_offsets(self.topic)
        return {partition: -(-end * turn // rounds) for partition, end in ends.items()}

    async def _note_rates(self, work: Work) -> None:
        for role, done in (("producer", "acknowledged"), ("consumer", "consumed")):
            if parts := await work.parts(role):
                self.record.rates.setdefault(role, []).append(_rate(parts, done))

    async def _statistics(self) -> Sequence[BrokerStatistics]:
        """The brokers' own counters; none while a node is down, for then they cannot all be asked."""
        return () if self.faults.down else await self.system.statistics()


def topic_of(trial: Trial) -> str:
    """One name for a topic each: Apache Kafka deletes topics in its own time, and takes no new one of the same name."""
    purpose, _, _ = trial.id.partition("/")
    return f"{purpose if purpose in UNTIMED_TRIALS else 'trial'}-{trial.position}"


def _rate(parts: Parts, done: str) -> float:
    window_s = max((part["window_s"] for part in parts), default=0.0)
    return sum(part[done] for part in parts) / window_s if window_s else 0.0

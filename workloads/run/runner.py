"""Run a plan: blocks, legs, trials. A finished trial is on disk before the next begins, so a run can be killed
and goes on from there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field
from shutil import rmtree
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from workloads.clients.drivers.api import DriverError
from workloads.clients.process import Client, ClientFailed
from workloads.errors import BrokerlabError
from workloads.processes.pinning import bind
from workloads.processes.ports import NoFreePort
from workloads.processes.process import ProcessFailed
from workloads.run.manifest import new_manifest, now
from workloads.run.precision import Precision
from workloads.run.wall_time import Spent, described
from workloads.systems.api import SystemSetup, SystemUnready
from workloads.systems.nodes import NoEffect
from workloads.systems.registry import create
from workloads.topology.api import TopologyFailed, TopologyUnavailable
from workloads.topology.choice import remove_everywhere, topology_of
from workloads.trial.record import FAILED, INVALID, VALID, Size, TrialRecord
from workloads.trial.trial import NO_FAULTS, TrialRun

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from workloads.faults.script import Script
    from workloads.results import ResultsFolder
    from workloads.run.progress import Progress
    from workloads.spec.plan import Block, Leg, Plan, Trial
    from workloads.systems.api import System
    from workloads.topology.api import Topology

# So many clusters of a leg may be lost before a measured trial; then the rest of the leg fails.
LOST_MAX: Final = 2
# A client that loses its broker may say so before the broker's own end is noticed, which is the better reason.
END_NOTICED_WITHIN_S: Final = 1.0
# The faster end's window may be shorter than asked for, but not so short that its rate says nothing.
SHORTEST_WINDOW_S: Final = 0.35
# At least this much of each partition is consumed: in streaming, the warm-up that sizes may end before consumers get
# anything, because producers keep the brokers or ZooKeeper busy.
BATCHES_CONSUMED_MIN: Final = 10


class SpecChanged(BrokerlabError):
    """The folder holds another experiment's records."""

    exit_code = 2


class DiskFull(BrokerlabError):
    """Raw records could not be written."""


class ClusterLost(BrokerlabError):
    """A cluster did not come to its first measured trial."""


@dataclass(frozen=True, slots=True)
class Summary:
    valid: int
    invalid: int
    failed: int
    spent: str = field(default="", compare=False)  # what the time went into, as it is said


class Run:
    """One plan into one results folder. In every measured trial the script's faults are put in; its clients write a
    history where that is asked for."""

    def __init__(
        self,
        plan: Plan,
        results: ResultsFolder,
        progress: Progress,
        script: Script = NO_FAULTS,
        *,
        history: bool = False,
    ) -> None:
        self._script = script
        self._history = history or bool(script.steps)
        self._plan = plan
        self._results = results
        self._progress = progress
        self._work = results.path / "work"
        self._manifest = self._opened_manifest()
        self._precision = Precision(plan, results)
        self._spent = Spent(self._manifest.setdefault("spent", {}))
        # Finished by now, whatever came of it; a trial that failed in an earlier run is not, and runs again.
        self._over = {trial for trial, (verdict, _) in results.finished_trials().items() if verdict != FAILED}
        # The outcome of the trial before, if it was a calibration.
        self._calibrated: TrialRecord | None = None

    def _opened_manifest(self) -> dict[str, Any]:
        found = self._results.manifest_to_go_on_with()
        if found is None:
            return new_manifest(self._plan)
        if found["spec_hash"] != self._plan.spec_hash:
            raise SpecChanged(
                f"{self._results.path} holds records of another spec (hash {found['spec_hash'][:12]}, this one is "
                f"{self._plan.spec_hash[:12]}); name a new folder with --out"
            )
        return found

    async def run(self) -> Summary:
        """Everything that is not done yet. Raises `UserError` where nothing can run, `DiskFull`."""
        sure = {trial.id for trial in self._plan.trials if trial.kind != "warmup" and self._plan.is_sure(trial)}
        self._manifest["ended"] = None
        self._note_planned(sure)
        self._progress.begin(self._plan, len(self._over & sure))
        tries = 0
        try:
            for block in self._plan.blocks:
                if not self._is_needed(block):
                    break
                self._open_as_closed(block)
                for leg in block.legs:
                    await self._leg(leg)
                tries = block.number
        finally:
            await remove_everywhere(self._work, self._plan.hosts)
            self._progress.end()
        summary = self._summary()
        if not summary.failed:  # else the next run goes on here
            self._manifest["ended"] = now()
            self._manifest["tries"] = max(tries, self._manifest.get("tries", 0))
        self._results.write_manifest(self._manifest)
        return summary

    def _note_planned(self, trials: Collection[str]) -> None:
        self._manifest["planned"] = sorted({*self._manifest["planned"], *trials})
        self._results.write_manifest(self._manifest)

    def _is_needed(self, block: Block) -> bool:
        """Whether a block is run: one that is not sure, only where those before it do not tell the ratios apart well
        enough. They are on disk, so an interrupted run that goes on decides the same."""
        trials = [trial for leg in block.legs for trial in leg.trials if trial.kind != "warmup"]
        if all(map(self._plan.is_sure, trials)):
            return True
        assert self._plan.until is not None, "only with `until` are there blocks that are not sure"
        if self._precision.reached(self._plan.until.ratio_interval, block.number - 1):
            return False
        ids = {trial.id for trial in trials}
        self._note_planned(ids)
        self._progress.grows(len(ids - self._over))
        return True

    def _open_as_closed(self, block: Block) -> None:
        """The calibration that closed the block before, a moment ago, opens this one too: once more, it would only say
        the same again. An interrupted run that goes on here measures it again."""
        opening = block.legs[0].trials[-1]
        if self._calibrated is None or not self._wanted(opening) or opening.kind != "calibration":
            return
        closing = {each.legs[-1].trials[-1].id for each in self._plan.blocks if each.number < block.number}
        if self._calibrated.trial.id in closing and self._calibrated.verdict == VALID:
            self._end(self._calibrated.under(opening))

    def _summary(self) -> Summary:
        verdicts = [verdict for verdict, _ in self._results.finished_trials().values()]
        valid, invalid, failed = (verdicts.count(verdict) for verdict in (VALID, INVALID, FAILED))
        return Summary(valid, invalid, failed, described(self._manifest["spent"]))

    async def _leg(self, leg: Leg) -> None:
        """Run what is not over. A trial that fails may have left anything behind, so the rest gets a new cluster."""
        self._give_up(self._unsized(leg), "the warm-up that finds its length failed, in the run's first block")
        lost = 0
        while left := self._left_of(leg):
            try:
                with self._spent.beside_trials("clusters"):
                    await self._cluster_life(leg, left)
            except ClusterLost as error:
                lost += 1
                if lost == LOST_MAX:
                    self._give_up(left, str(error))

    def _give_up(self, trials: Sequence[Trial], reason: str) -> None:
        for trial in trials:
            self._calibrated = None
            if trial.kind != "warmup":
                self._end(TrialRecord(trial, verdict=FAILED, reason=reason))

    def _unsized(self, leg: Leg) -> list[Trial]:
        """Trials whose length nobody knows, nor will before their turn comes."""
        known = {*self._manifest["sizes"], *(self._size_key(trial) for trial in leg.trials if trial.sizes)}
        left = (trial for trial in self._left_of(leg) if trial.kind != "warmup" and trial.length.messages is None)
        return [trial for trial in left if self._size_key(trial) not in known]

    def _left_of(self, leg: Leg) -> list[Trial]:
        """The leg's trials that are not over, with the warm-ups that they need; empty if nothing but those is left.

        Warm-ups that find a length stand in the place of the last that does not: they warm as well, and what they find
        has to hold for a cluster that is as warm as the profile asks for.
        """
        wanted = [trial for trial in leg.trials if self._wanted(trial)]
        if any(trial.sizes for trial in wanted):
            last = [trial for trial in wanted if trial.kind == "warmup" and not trial.sizes][-1:]
            wanted = [trial for trial in wanted if trial not in last]
        return wanted if any(trial.kind != "warmup" for trial in wanted) else []

    def _wanted(self, trial: Trial) -> bool:
        if trial.kind != "warmup":
            return trial.id not in self._over
        return not (trial.sizes and self._size_key(trial) in self._manifest["sizes"])

    async def _cluster_life(self, leg: Leg, trials: Sequence[Trial]) -> None:
        """Run trials until all are over or one fails. Raises `ClusterLost`."""
        first = next(trial for trial in trials if trial.kind != "warmup")
        label = f"block-{first.block}-{leg.architecture.name}-{first.position}"
        logs = self._results.path / "logs" / label
        async with AsyncExitStack() as stack:
            topology = topology_of(leg.cluster, *_clients_needed(trials), self._plan.hosts)
            stack.push_async_callback(topology.stop)
            system = create(SystemSetup(leg.architecture, leg.cluster, self._work / label, logs, topology))
            stack.push_async_callback(system.stop)
            try:
                await topology.start(logs)
                clients = await self._clients(stack, trials, logs, topology)  # they load while the cluster starts
                await system.start()
            except (ProcessFailed, SystemUnready, NoFreePort, TopologyUnavailable, TopologyFailed) as error:
                raise ClusterLost(f"the cluster did not start: {error}") from error
            bound = [*system.nodes.processes_here.values(), *((client.role, client.process) for client in clients)]
            for role, process in bound:
                bind(process.pid, self._plan.pin.of_role(role))
            for trial in trials:
                record = await self._trial(trial, system, clients)
                if record.verdict == FAILED:
                    if trial.kind == "warmup":
                        raise ClusterLost(f"{trial.id}: {record.reason}")
                    return

    async def _clients(
        self, stack: AsyncExitStack, trials: Sequence[Trial], logs: Path, topology: Topology
    ) -> list[Client]:
        """As many producers and consumers as the hungriest of the trials needs."""
        clients = []
        drivers = sorted({trial.cell.workload.driver for trial in trials})
        for role, count in zip(("producer", "consumer"), _clients_needed(trials), strict=True):
            for number in range(count):
                client = await Client.start(role, number, drivers, logs, topology)
                stack.push_async_callback(client.process.stop)
                clients.append(client)
        return clients

    async def _trial(self, trial: Trial, system: System, clients: Sequence[Client]) -> TrialRecord:
        """Run one trial and write it down."""
        work = self._work / "trial"
        rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        script, history = (self._script, self._history) if trial.kind == "measured" else (NO_FAULTS, False)
        size, timeout_s = self._size(trial), self._plan.timeout_s
        run = TrialRun(trial, size, system, clients, work, timeout_s, script, history=history)
        record = run.record
        self._progress.trial_begins(trial)
        before = monotonic()
        try:
            await self._watched(run)
        except (ProcessFailed, ClientFailed, DriverError, NoEffect, TopologyFailed, TrialTimeout) as failed:
            record.verdict, record.reason = FAILED, str(failed)
        self._end(record)
        self._calibrated = record if trial.kind == "calibration" else None
        if trial.kind == "warmup":
            self._spent.add("warm-ups", monotonic() - before)
        else:
            self._spent.add_trial(monotonic() - before, record.windows_s, record.audit_s)
        return record

    def _end(self, record: TrialRecord) -> None:
        """Write down what came of a trial (of a warm-up, only the length that it found), and say it."""
        trial = record.trial
        try:
            if trial.kind != "warmup":
                self._results.write_trial(record.row(self._plan), record.requests or [], record.latency, record.history)
                self._over.add(trial.id)
            elif trial.sizes and record.verdict != FAILED:
                self._manifest["sizes"][self._size_key(trial)] = asdict(_found_size(record))
                self._results.write_manifest(self._manifest)
        except OSError as error:
            raise DiskFull(
                f"{error.strerror or error}: trial {trial.id} cannot be written to {self._results.path}; what is "
                "there is kept, and the same command goes on with it"
            ) from error
        self._progress.trial_ends(record)

    async def _watched(self, run: TrialRun) -> None:
        """Run the trial while the system lives and the time lasts."""
        work = asyncio.create_task(run.run())
        watch = asyncio.create_task(run.faults.failed())
        try:
            await asyncio.wait({work, watch}, timeout=self._plan.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and work.exception() is not None:
                await asyncio.wait({watch}, timeout=END_NOTICED_WITHIN_S)
            if watch.done():
                raise watch.result()
            if not work.done():
                raise TrialTimeout(f"not finished within {self._plan.timeout_s:g} s; it was {run.record.doing}")
            work.result()
        finally:
            watch.cancel()
            work.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)

    def _size_key(self, trial: Trial) -> str:
        return f"{trial.cell.id}/{trial.architecture.name}"

    def _size(self, trial: Trial) -> Size | None:
        """How long a trial is; None for a warm-up, which goes by time."""
        if trial.length.messages is not None:
            return Size(trial.length.messages, trial.length.messages)
        if trial.kind == "warmup":
            return None
        return Size(**self._manifest["sizes"][self._size_key(trial)])


def _clients_needed(trials: Sequence[Trial]) -> tuple[int, int]:
    """Producers and consumers of the hungriest of the trials."""
    workloads = [trial.cell.workload for trial in trials]
    return max(each.producers for each in workloads), max(each.consumers for each in workloads)


def _found_size(record: TrialRecord) -> Size:
    """For windows of about the asked length at the rates that the warm-up reached, each end at its own.

    Where consumption is the faster end it has to be sent more to read, yet not so much that production takes long.
    """
    trial = record.trial
    asked = trial.sizes
    assert asked is not None, "a warm-up that sizes says for which length"
    assert asked.duration_s is not None, "a trial of so many messages needs no sizing"
    produced_rps, consumed_rps = record.rates()
    wanted = max(produced_rps * asked.duration_s, consumed_rps * min(SHORTEST_WINDOW_S, asked.duration_s))
    batch = trial.cell.batch_size
    messages = max(asked.messages_min, round(wanted / batch) * batch)
    least = min(asked.messages_min, BATCHES_CONSUMED_MIN * batch * trial.cell.cluster.partitions)
    return Size(messages, min(messages, max(least, round(consumed_rps * asked.duration_s))))


class TrialTimeout(BrokerlabError):
    """A trial took longer than the spec allows."""

"""Run a plan: blocks, legs, trials. What is finished is on disk before the next begins, so a run can be killed and
goes on from there."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from shutil import rmtree
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from workloads.cluster import Client, ClientFailed, Cluster
from workloads.drivers.api import DriverError, load
from workloads.errors import BrokerlabError
from workloads.manifest import new_manifest, now
from workloads.ports import NoFreePort
from workloads.processes import ProcessFailed
from workloads.trial import Measured, TrialRun, trial_row
from workloads.zookeeper import ZooKeeperUnready

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from workloads.audit import Counts
    from workloads.drivers.api import Admin
    from workloads.plan import Leg, Plan, Trial
    from workloads.progress import Progress
    from workloads.results import ResultsFolder

VALID: Final = "valid"
INVALID: Final = "invalid"  # finished, and does not balance
FAILED: Final = "failed"  # not finished; run again by the next `run`
# So many clusters of a leg may be lost before a measured trial; then the rest of the leg fails.
LOST_MAX: Final = 2
# A client that loses its broker may say so before the broker's own end is noticed, which is the better reason.
END_NOTICED_WITHIN_S: Final = 1.0
# The faster end's window may be shorter than asked for, but not so short that its rate says nothing.
SHORTEST_WINDOW_S: Final = 0.35


class SpecChanged(BrokerlabError):
    """The folder holds another experiment's records."""

    exit_code = 2


class DiskFull(BrokerlabError):
    """Raw records could not be written."""


class ClusterLost(BrokerlabError):
    """A cluster did not come to its first measured trial."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial; `counts` and `requests` where it was finished."""

    verdict: str
    reason: str
    counts: Counts | None = None
    requests: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A trial's end, as the progress line shows it."""

    verdict: str
    reason: str
    produced_rps: float
    consumed_rps: float
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    valid: int
    invalid: int
    failed: int


class Run:
    """One plan into one results folder."""

    def __init__(self, plan: Plan, results: ResultsFolder, progress: Progress) -> None:
        self._plan = plan
        self._results = results
        self._progress = progress
        self._work = results.path / "work"
        self._manifest = self._opened_manifest()
        # Finished by now, whatever came of it; a trial that failed in an earlier run is not, and runs again.
        self._over = {trial for trial, (verdict, _) in results.finished_trials().items() if verdict != FAILED}

    def _opened_manifest(self) -> dict[str, Any]:
        found = self._results.read_manifest()
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
        self._manifest["planned"] = sorted({*self._manifest["planned"], *self._plan_ids()})
        self._manifest["ended"] = None
        self._results.write_manifest(self._manifest)
        self._progress.begin(self._plan, len(self._over & self._plan_ids()))
        try:
            for block in self._plan.blocks:
                for leg in block.legs:
                    await self._leg(leg)
        finally:
            rmtree(self._work, ignore_errors=True)
            self._progress.end()
        summary = self._summary()
        if not summary.failed:  # else the next run goes on here
            self._manifest["ended"] = now()
            self._results.write_manifest(self._manifest)
        return summary

    def _plan_ids(self) -> set[str]:
        return {trial.id for trial in self._plan.trials if trial.kind != "warmup"}

    def _summary(self) -> Summary:
        verdicts = [verdict for verdict, _ in self._results.finished_trials().values()]
        return Summary(*(verdicts.count(verdict) for verdict in (VALID, INVALID, FAILED)))

    async def _leg(self, leg: Leg) -> None:
        """Run what is not over. A trial that fails may have left anything behind, so the rest gets a new cluster."""
        self._give_up(self._unsized(leg), "the warm-up that finds its length failed, in the run's first block")
        lost = 0
        while left := self._left_of(leg):
            try:
                await self._cluster_life(leg, left)
            except ClusterLost as error:
                lost += 1
                if lost == LOST_MAX:
                    self._give_up(left, str(error))

    def _give_up(self, trials: Sequence[Trial], reason: str) -> None:
        for trial in trials:
            if trial.kind != "warmup":
                self._end(trial, None, Measured(), Outcome(FAILED, reason), elapsed_s=0.0)

    def _unsized(self, leg: Leg) -> list[Trial]:
        """Trials whose length nobody knows, nor will before their turn comes."""
        known = {*self._manifest["sizes"], *(self._size_key(trial) for trial in leg.trials if trial.sizes)}
        left = (trial for trial in self._left_of(leg) if trial.kind != "warmup" and trial.length.messages is None)
        return [trial for trial in left if self._size_key(trial) not in known]

    def _left_of(self, leg: Leg) -> list[Trial]:
        """The leg's trials that are not over, with the warm-ups that they need; empty if nothing but those is left."""
        wanted = [trial for trial in leg.trials if self._wanted(trial)]
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
            cluster = Cluster(leg.architecture, leg.cluster, self._work / label, logs)
            stack.push_async_callback(cluster.stop)
            try:
                await cluster.start()
            except (ProcessFailed, ZooKeeperUnready, NoFreePort) as error:
                raise ClusterLost(f"the cluster did not start: {error}") from error
            clients = await self._clients(stack, trials, logs)
            admin = load(first.cell.workload.driver).Admin(cluster.rpc_addresses)
            stack.push_async_callback(admin.close)
            for trial in trials:
                outcome = await self._trial(trial, cluster, clients, admin)
                if outcome.verdict == FAILED:
                    if trial.kind == "warmup":
                        raise ClusterLost(f"{trial.id}: {outcome.reason}")
                    return

    async def _clients(self, stack: AsyncExitStack, trials: Sequence[Trial], logs: Path) -> list[Client]:
        """As many producers and consumers as the hungriest of the trials needs."""
        clients = []
        for role, count in (
            ("producer", max(trial.cell.workload.producers for trial in trials)),
            ("consumer", max(trial.cell.workload.consumers for trial in trials)),
        ):
            for number in range(count):
                client = await Client.start(role, number, logs)
                stack.push_async_callback(client.process.stop)
                clients.append(client)
        return clients

    async def _trial(self, trial: Trial, cluster: Cluster, clients: Sequence[Client], admin: Admin) -> Outcome:
        """Run one trial and write it down."""
        work = self._work / "trial"
        rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        messages = self._messages(trial)
        run = TrialRun(trial, messages, cluster, clients, admin, work)
        self._progress.trial_begins(trial)
        before = monotonic()
        try:
            counts, findings, requests = await self._watched(run, cluster)
            outcome = Outcome(INVALID if findings else VALID, "; ".join(findings), counts, requests)
        except (ProcessFailed, ClientFailed, DriverError, TrialTimeout) as failed:
            outcome = Outcome(FAILED, str(failed))
        self._end(trial, messages, run.measured, outcome, monotonic() - before)
        return outcome

    def _end(self, trial: Trial, messages: int | None, measured: Measured, outcome: Outcome, elapsed_s: float) -> None:
        """Write down what came of a trial (of a warm-up, only the length that it found), and say it."""
        try:
            if trial.kind != "warmup":
                row = trial_row(self._plan, trial, messages, measured, outcome)
                self._results.write_trial(row, outcome.requests or [])
                self._over.add(trial.id)
            elif trial.sizes and outcome.verdict != FAILED:
                self._manifest["sizes"][self._size_key(trial)] = self._size(trial, measured)
                self._results.write_manifest(self._manifest)
        except OSError as error:
            raise DiskFull(
                f"{error.strerror or error}: trial {trial.id} cannot be written to {self._results.path}; what is "
                "there is kept, and the same command goes on with it"
            ) from error
        finished = Finished(outcome.verdict, outcome.reason, *measured.rates(), elapsed_s)
        self._progress.trial_ends(trial, finished)

    async def _watched(self, run: TrialRun, cluster: Cluster) -> tuple[Counts, tuple[str, ...], pa.Table]:
        """Run the trial while the cluster lives and the time lasts."""
        work = asyncio.create_task(run.run())
        watch = asyncio.create_task(cluster.failed())
        try:
            await asyncio.wait({work, watch}, timeout=self._plan.timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done() and work.exception() is not None:
                await asyncio.wait({watch}, timeout=END_NOTICED_WITHIN_S)
            if watch.done():
                raise watch.result()
            if not work.done():
                raise TrialTimeout(f"not finished within {self._plan.timeout_s:g} s; it was {run.stage}")
            return work.result()
        finally:
            watch.cancel()
            work.cancel()
            await asyncio.gather(work, watch, return_exceptions=True)

    def _size_key(self, trial: Trial) -> str:
        return f"{trial.cell.id}/{trial.architecture.name}"

    def _messages(self, trial: Trial) -> int | None:
        """How many messages a trial sends; None for a warm-up, which goes by time."""
        if trial.length.messages is not None:
            return trial.length.messages
        if trial.kind == "warmup":
            return None
        found: int = self._manifest["sizes"][self._size_key(trial)]
        return found

    def _size(self, trial: Trial, measured: Measured) -> int:
        """Messages for windows of about the asked length at the rates that the warm-up reached."""
        asked = trial.sizes
        assert asked is not None, "a warm-up that sizes says for which length"
        assert asked.duration_s is not None, "a trial of so many messages needs no sizing"
        slow, fast = sorted(measured.rates())
        wanted = max(slow * asked.duration_s, fast * min(SHORTEST_WINDOW_S, asked.duration_s))
        batch = trial.cell.batch_size
        return max(asked.messages_min, round(wanted / batch) * batch)


class TrialTimeout(BrokerlabError):
    """A trial took longer than the spec allows."""

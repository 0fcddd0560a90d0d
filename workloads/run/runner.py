"""Run a plan: blocks, fleets, visits. What is finished is on disk before the next begins, so a run can be killed and
goes on from there."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from workloads.errors import BrokerlabError
from workloads.run.allocation import rounds_for
from workloads.run.arm import Arm, ClusterLost
from workloads.run.manifest import new_manifest, now
from workloads.run.pace import Pace
from workloads.run.precision import Precision
from workloads.run.rounds import first_turn
from workloads.run.visit import VisitRun
from workloads.run.wall_time import Spent, described
from workloads.topology.choice import remove_everywhere
from workloads.trial.record import FAILED, INVALID, VALID, TrialRecord
from workloads.trial.trial import NO_FAULTS, SUSTAINED, WARMUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from workloads.faults.script import Script
    from workloads.results import ResultsFolder
    from workloads.run.progress import Progress
    from workloads.spec.plan import Block, Cell, Fleet, Plan, Visit
    from workloads.trial.trial import TrialRun

# So many clusters of an architecture may be lost in a fleet; then the rest of its trials there fail.
LOST_MAX: Final = 2
# A warm-up is long enough for the clients and brokers to be at speed.
WARMUP_S: Final = 0.5
# How long both ends work to find what an architecture sustains.
SUSTAINED_S: Final = 1.0


class SpecChanged(BrokerlabError):
    """The folder holds another experiment's records."""

    exit_code = 2


class DiskFull(BrokerlabError):
    """Raw records could not be written."""


@dataclass(frozen=True, slots=True)
class Summary:
    valid: int
    invalid: int
    failed: int
    spent: str = field(default="", compare=False)  # what the time went into, as it is said


class Run:
    """One plan into one results folder. In every trial the script's faults are put in; its clients write a history
    where that is asked for."""

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
        self._manifest = self._opened_manifest()
        self._precision = Precision(plan, results)
        self._spent = Spent(self._manifest.setdefault("spent", {}))
        # Finished by now, whatever came of it; a trial that failed in an earlier run is not, and runs again.
        self._over = {trial for trial, (verdict, _) in results.finished_trials().items() if verdict != FAILED}
        self._pace = Pace()
        self._arms: dict[str, Arm] = {}
        self._lost: dict[str, int] = {}  # architecture -> clusters lost in this fleet
        self._why: dict[str, str] = {}  # architecture -> why its last cluster was lost

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
        sure = {trial.id for trial in self._plan.sure_trials}
        self._manifest["ended"] = None
        self._note_planned(sure)
        self._progress.begin(self._plan, len(self._over & sure))
        tries = 0
        try:
            for block in self._plan.blocks:
                rounds = self._rounds(block)
                if rounds is None:
                    break
                await self._block(block, rounds)
                tries = block.number
        finally:
            await remove_everywhere(self._results.path / "work", self._plan.hosts)
            self._progress.end()
        summary = self._summary()
        if not summary.failed:  # else the next run goes on here
            self._manifest["ended"] = now()
            self._manifest["tries"] = max(tries, self._manifest.get("tries", 0))
        self._results.write_manifest(self._manifest)
        return summary

    def _note_planned(self, trials: Iterable[str]) -> None:
        self._manifest["planned"] = sorted({*self._manifest["planned"], *trials})
        self._results.write_manifest(self._manifest)

    def _summary(self) -> Summary:
        verdicts = [verdict for verdict, _ in self._results.finished_trials().values()]
        valid, invalid, failed = (verdicts.count(verdict) for verdict in (VALID, INVALID, FAILED))
        return Summary(valid, invalid, failed, described(self._manifest["spent"]))

    # --- how much is measured -----------------------------------------------------------------------------

    def _rounds(self, block: Block) -> Mapping[str, int] | None:
        """The rounds of each cell in a block; None where the block is not run. What was decided is written down, so
        that an interrupted run goes on as it began."""
        decided: dict[str, Mapping[str, int]] = self._manifest["rounds"]
        if (known := decided.get(str(block.number))) is not None:
            return known
        found = rounds_for(self._plan, block.number, self._manifest["spent"], self._manifest["blocks"], self._precision)
        if found is None:
            return None
        decided[str(block.number)] = found
        if not self._plan.is_sure(block):
            ids = {trial.id for trial in block.trials}
            self._progress.grows(len(ids - self._over))
            self._note_planned(ids)
        self._results.write_manifest(self._manifest)
        return found

    # --- a block ------------------------------------------------------------------------------------------

    async def _block(self, block: Block, rounds: Mapping[str, int]) -> None:
        before = sum(self._manifest["spent"].values())
        began = len(self._over)
        for fleet in block.fleets:
            left = replace(fleet, visits=tuple(visit for visit in fleet.visits if not self._is_over(visit)))
            if left.visits:
                await self._fleet(block.number, left, rounds)
        if len(self._over) - began >= len(block.trials):  # else it was run in parts, and its time says nothing
            spent_s = sum(self._manifest["spent"].values()) - before
            self._manifest["blocks"][str(block.number)] = round(spent_s, 3)
            self._results.write_manifest(self._manifest)

    def _is_over(self, visit: Visit) -> bool:
        """A visit whose windows could not all take turns is measured again as a whole."""
        return all(trial.id in self._over for trial in visit.trials)

    async def _fleet(self, block: int, fleet: Fleet, rounds: Mapping[str, int]) -> None:
        """Run the visits on clusters that are all up; one that is lost is started again before the next visit."""
        self._lost, self._why = {}, {}
        self._arms = {
            each.name: Arm(
                each, fleet, self._plan, self._results.path,
                f"block-{block}-{each.name}-{fleet.visits[0].trials[0].position}", self._pids,
            )
            for each in fleet.architectures
        }  # fmt: skip
        try:
            for visit in fleet.visits:
                with self._spent.beside_trials("clusters"):
                    await self._bring_up(visit)
                await self._visit(block, visit, rounds[visit.cell.id])
        finally:
            with self._spent.beside_trials("clusters"):
                await asyncio.gather(*(arm.stop() for arm in self._arms.values()))

    def _pids(self) -> list[int]:
        """All processes of this run, this one too."""
        return [os.getpid(), *(pid for arm in self._arms.values() for pid in arm.pids)]

    async def _bring_up(self, visit: Visit) -> None:
        """Start what is not up, and warm it up. Raises `UserError`."""
        down = [arm for name, arm in self._arms.items() if not arm.up and self._lost.get(name, 0) < LOST_MAX]
        if not down:
            return
        starting = [asyncio.create_task(self._start(arm)) for arm in down]
        try:
            await asyncio.gather(*starting)
        finally:
            for task in starting:
                task.cancel()
            await asyncio.gather(*starting, return_exceptions=True)
        for arm in down:
            if arm.up and self._plan.warmup:
                with self._spent.timed("warm-ups"):
                    await self._warm(arm, visit)

    async def _start(self, arm: Arm) -> None:
        name = arm.architecture.name
        try:
            await arm.start()
        except ClusterLost as error:
            self._note_lost(name, str(error))

    def _note_lost(self, name: str, why: str) -> None:
        self._lost[name] = self._lost.get(name, 0) + 1
        self._why[name] = why

    async def _warm(self, arm: Arm, visit: Visit) -> None:
        """Untimed windows of the first cell, both ends at once."""
        trial = next(each for each in visit.trials if each.architecture == arm.architecture)
        cell = replace(trial.cell, mode="streaming", load=None)
        run = arm.trial(replace(trial, id=f"{WARMUP}/{trial.id}", cell=cell), NO_FAULTS, history=False)

        async def warm() -> None:
            await run.open()
            for _ in range(self._plan.warmup):
                await run.warm(WARMUP_S)
            await run.forget()

        if not await arm.guarded(run, warm):
            self._note_lost(arm.architecture.name, f"the warm-up failed: {run.record.reason}")

    # --- a visit ------------------------------------------------------------------------------------------

    async def _visit(self, block: int, visit: Visit, rounds: int) -> None:
        """Measure one cell on all that are up, and write down what came of it."""
        up = {name: arm for name, arm in self._arms.items() if arm.up}
        records = []
        before = monotonic()
        rate = await self._load_rate(visit, up) if up else None
        if rate is None and visit.cell.load is not None:
            up = {}  # at another rate than asked for, it would be another cell
        if up:
            turn = first_turn(self._plan.seed, block, visit.cell.id)
            run = VisitRun(visit, up, self._begin, self._pace, rounds, turn)
            self._progress.visit_begins(visit)
            await run.run(rate)
            records = run.records
        for trial in visit.trials:
            if trial.architecture.name not in up:
                record = TrialRecord(trial)
                lost = not self._arms[trial.architecture.name].up
                record.fail(
                    self._why[trial.architecture.name] if lost else "what all architectures sustain is not known"
                )
                records.append(record)
        self._note_time(monotonic() - before, records)
        for record in records:
            self._end(record)
            if record.verdict == FAILED and record.trial.architecture.name in up:
                self._note_lost(record.trial.architecture.name, record.reason)

    def _begin(self, arm: Arm, visit: Visit) -> TrialRun:
        trial = next(each for each in visit.trials if each.architecture == arm.architecture)
        return arm.trial(trial, self._script, history=self._history)

    async def _load_rate(self, visit: Visit, up: Mapping[str, Arm]) -> float | None:
        """Of a cell in mode load: its share of what the slowest architecture sustains, which is found once."""
        cell: Cell = visit.cell
        if cell.load is None:
            return None
        known: dict[str, float] = self._manifest["sustained"]
        if cell.sustained_key not in known:
            run = VisitRun(visit, up, self._begin_plainly, Pace(), 1, 0)
            found = await run.sustained(SUSTAINED_S)
            for record in run.records:
                if record.verdict == FAILED:
                    self._note_lost(record.trial.architecture.name, record.reason)
            if found is None:
                return None
            known[cell.sustained_key] = found
            self._results.write_manifest(self._manifest)
        return cell.load * known[cell.sustained_key]

    def _begin_plainly(self, arm: Arm, visit: Visit) -> TrialRun:
        trial = next(each for each in visit.trials if each.architecture == arm.architecture)
        return arm.trial(replace(trial, id=f"{SUSTAINED}/{trial.id}"), NO_FAULTS, history=False)

    def _note_time(self, wall_s: float, records: Sequence[TrialRecord]) -> None:
        windows_s = sum(record.windows_s for record in records)
        audits_s = max((record.audit_s for record in records), default=0.0)
        self._spent.add_visit(wall_s, windows_s, audits_s)

    def _end(self, record: TrialRecord) -> None:
        """Write down what came of a trial, and say it."""
        try:
            requests = [] if record.requests is None else record.requests
            self._results.write_trial(record.row(self._plan), requests, record.latency, record.history)
        except OSError as error:
            raise DiskFull(
                f"{error.strerror or error}: trial {record.trial.id} cannot be written to {self._results.path}; what "
                "is there is kept, and the same command goes on with it"
            ) from error
        self._over.add(record.trial.id)
        self._progress.trial_ends(record)

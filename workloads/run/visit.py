"""A cell in a block: its trials on all architectures at once, whose windows take turns.

A round is one window of the same kind on each architecture, right after the other. In split all rounds of production
come first; then consumers join, and all rounds of consumption follow.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from workloads.faults.script import CONSUMPTION
from workloads.run.rounds import in_turn
from workloads.trial.record import Place
from workloads.trial.trial import WINDOWS, TrialRun

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from workloads.run.arm import Arm
    from workloads.run.pace import Pace
    from workloads.spec.plan import Visit
    from workloads.trial.record import TrialRecord

# So often a window is measured whose consumers run dry.
FILLS_MAX: Final = 6
# So much more is stored than the consumers are expected to take.
SPARE: Final = 1.5


class VisitRun:
    def __init__(
        self,
        visit: Visit,
        arms: Mapping[str, Arm],  # those that are up, by architecture
        begin: Callable[[Arm, Visit], TrialRun],
        pace: Pace,
        rounds: int,
        turn: int,
    ) -> None:
        self._visit = visit
        self._rounds = rounds
        self._turn = turn
        self._pace = pace
        self._arms = arms
        self._runs = {name: begin(arm, visit) for name, arm in arms.items()}

    @property
    def records(self) -> list[TrialRecord]:
        return [run.record for run in self._runs.values()]

    async def run(self, rate: float | None = None) -> None:
        """Everything from the topics' making to the audits; a trial that fails leaves the others as they are. `rate` is
        that of a cell in mode load."""
        for run in self._runs.values():
            run.record.rate = run.record.rate if rate is None else rate
        await self._all(TrialRun.open)
        for window in WINDOWS[self._visit.cell.mode]:
            if window == CONSUMPTION:
                await self._all(TrialRun.join)
            for turn in range(1, self._rounds + 1):
                await self._round(window, turn)
        await self._all(TrialRun.audit)

    async def sustained(self, seconds: float) -> float | None:
        """Messages/s that every architecture sustains with both ends at work; None where some cannot be asked."""
        found: list[float] = []

        async def measure(run: TrialRun) -> None:
            found.append(min(await run.warm(seconds)))

        await self._all(TrialRun.open)
        for name, run in self._live():
            await self._arms[name].guarded(run, partial(measure, run))
        await self._all(TrialRun.forget)
        return min(found) if len(found) == len(self._runs) else None

    def _live(self) -> list[tuple[str, TrialRun]]:
        return [(name, run) for name, run in self._runs.items() if not run.record.verdict and self._arms[name].up]

    async def _all(self, step: Callable[[TrialRun], Coroutine[Any, Any, None]]) -> None:
        """A step that is not timed, on all at once."""
        await asyncio.gather(*(self._arms[name].guarded(run, partial(step, run)) for name, run in self._live()))

    async def _round(self, window: str, turn: int) -> None:
        """Once more, with longer windows, where they were too short for the slowest architecture."""
        cell = self._visit.cell
        while True:
            for place, (name, run) in enumerate(in_turn(self._live(), self._turn + turn - 1), start=1):
                await self._arms[name].guarded(run, partial(self._window, name, run, window, turn, place))
            live = self._live()
            duration_s = live[0][1].record.trial.length.duration_s if live else None
            if duration_s is None or not self._pace.lengthens(cell, window, duration_s, [name for name, _ in live]):
                return
            for _, run in live:
                run.record.drop(window, turn)

    async def _window(self, name: str, run: TrialRun, window: str, turn: int, place: int) -> None:
        """One architecture's turn, again where it was disturbed; consumers get more where they ran dry."""
        at = partial(Place, window=window, round=turn, place=place)
        attempt = fills = 0
        while True:
            await self._ready(name, run, window, fills)
            run.number += 1
            found = await run.window(at(number=run.number, attempt=attempt + 1), self._longer(window))
            self._pace.note(self._visit.cell, name, run.record.rates)
            if found is None and (fills := fills + 1) < FILLS_MAX:
                continue
            attempt += 1
            if found is None or found.opened_ns is None or not self._pace.tries_again(attempt, found.load.disturbed):
                return

    async def _ready(self, name: str, run: TrialRun, window: str, fills: int) -> None:
        """Store what the consumers of a window of time will take; let those of a load come to the end first."""
        length = run.record.trial.length
        if self._visit.cell.mode == "load":
            await run.catch_up()
        if window != CONSUMPTION or length.duration_s is None:
            return
        cell, window_s = self._visit.cell, length.lead_s + length.duration_s * self._longer(window)
        known = self._pace.rate(cell, name, "consumer") or self._pace.rate(cell, name, "producer")
        wanted = known * window_s * SPARE * 2**fills
        stored = run.record.acknowledged - run.record.consumed
        least = cell.messages_least
        if stored < wanted:
            await run.fill(max(least, -(-int(wanted - stored) // least) * least))

    def _longer(self, window: str) -> float:
        return self._pace.factor(self._visit.cell, window)

"""Carries out a script of faults while a trial runs, and tells an end that the script asked for from any other."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING

from workloads.clients.drivers.api import OK
from workloads.clients.history import NO_OFFSET
from workloads.faults.script import KILL, PAUSE, RESUME, START, TERMINATE
from workloads.results import history_schema
from workloads.systems.nodes import NoEffect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import pyarrow as pa

    from workloads.faults.script import Script, Step
    from workloads.processes.process import ProcessFailed
    from workloads.systems.api import System


@dataclass(frozen=True, slots=True)
class Done:
    """A step that was carried out, and when: CLOCK_MONOTONIC, as the clients' times."""

    step: Step
    began_ns: int
    ended_ns: int


def as_history(done: Sequence[Done], trial_id: str) -> pa.Table:
    """Steps as rows of a trial's history."""
    import pyarrow as pa

    rows = [
        {
            "trial_id": trial_id, "role": "script", "client": 0, "operation": each.step.do, "partition": -1,
            "first": 0, "messages": 0, "offset": NO_OFFSET, "invoked_ns": each.began_ns, "done_ns": each.ended_ns,
            "outcome": OK, "detail": each.step.node,
        }
        for each in done
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=history_schema())


class Injection:
    """A script's way through one trial on a system that runs."""

    def __init__(self, script: Script, system: System) -> None:
        self._script = script
        self._system = system
        self.done: list[Done] = []
        self.down: set[str] = set()  # nodes that the script ended and has not started again
        self._turn = asyncio.Lock()
        self._acknowledged = 0
        self._more_acknowledged = asyncio.Event()
        self._started_again = asyncio.Event()

    def left(self) -> list[Step]:
        """The steps that were not carried out, because their moment did not come."""
        left = list(self._script.steps)
        for done in self.done:
            left.remove(done.step)
        return left

    def ended_since(self, moment_ns: int) -> set[str]:
        """The nodes that the script ended after a moment, so that their counters started again or are gone."""
        late = (done for done in self.done if done.began_ns >= moment_ns)
        return {done.step.node for done in late if done.step.do in {KILL, TERMINATE}}

    async def begin(self, stage: str) -> None:
        """Carry out what is to be done before anything else of a stage. Raises as the system's verbs do."""
        for step in self._script.steps:
            if step.at == stage and step.after_s is None and step.after_acknowledged is None:
                await self._do(step)

    @asynccontextmanager
    async def during(self, stage: str) -> AsyncIterator[None]:
        """Carry out what is to be done in a round while it lasts. A step that fails ends the round with its error."""
        steps = [step for step in self._script.steps if step.at == stage]
        timed = sorted((step for step in steps if step.after_s is not None), key=lambda step: step.after_s or 0.0)
        counted = sorted(
            (step for step in steps if step.after_acknowledged is not None),
            key=lambda step: step.after_acknowledged or 0,
        )
        if not timed and not counted:
            yield
            return
        began_ns = monotonic_ns()
        try:
            async with asyncio.TaskGroup() as tasks:
                acting = [tasks.create_task(self._in_time(timed, began_ns)), tasks.create_task(self._in_turn(counted))]
                yield
                async with self._turn:  # a step that has begun comes to its end
                    for task in acting:
                        task.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _in_time(self, steps: Sequence[Step], began_ns: int) -> None:
        for step in steps:
            due_ns = began_ns + round((step.after_s or 0.0) * 1e9)
            await asyncio.sleep(max(0.0, (due_ns - monotonic_ns()) / 1e9))
            await self._do(step)

    async def _in_turn(self, steps: Sequence[Step]) -> None:
        for step in steps:
            while self._acknowledged < (step.after_acknowledged or 0):
                self._more_acknowledged.clear()
                await self._more_acknowledged.wait()
            await self._do(step)

    def acknowledged(self, messages: int) -> None:
        """So many are acknowledged by now."""
        self._acknowledged = messages
        self._more_acknowledged.set()

    async def _do(self, step: Step) -> None:
        async with self._turn:
            await self._do_alone(step)

    async def _do_alone(self, step: Step) -> None:
        nodes, began_ns = self._system.nodes, monotonic_ns()
        if step.do in {KILL, TERMINATE}:
            self.down.add(step.node)  # before its end, which is expected from now
        if step.do == START:
            if step.node not in self.down:  # two of one name would both be there, and only one be known
                raise NoEffect(f"{step.node} is not started again: the script has not ended it")
            await self._system.start_again(step.node)
            self.down.discard(step.node)
            self._started_again.set()
        else:
            verbs = {KILL: nodes.kill, TERMINATE: nodes.terminate, PAUSE: nodes.pause, RESUME: nodes.resume}
            await verbs[step.do](step.node)
        self.done.append(Done(step, began_ns, monotonic_ns()))

    async def failed(self) -> ProcessFailed:
        """Wait until a process ends that the script did not end, and say which and how."""
        while True:
            self._started_again.clear()
            watched = {n: process for n, (_, process) in self._system.nodes.processes.items() if n not in self.down}
            ends = {name: asyncio.create_task(process.ended()) for name, process in watched.items()}
            again = asyncio.create_task(self._started_again.wait())
            try:
                await asyncio.wait({*ends.values(), again}, return_when=asyncio.FIRST_COMPLETED)
                for name, end in ends.items():
                    if end.done() and name not in self.down:
                        return watched[name].failure()
            finally:
                for task in (*ends.values(), again):
                    task.cancel()

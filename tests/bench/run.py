"""All trials of a benchmark: sized by a short one, repeated in blocks, the targets in turns within each cell."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, Literal

from tests.bench.cells import Cell
from tests.bench.target import PARTITIONS
from tests.bench.trial import Length, Trial
from workloads.errors import BrokerlabError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.target import Target
    from tests.bench.trial import Clients, Window

Kind = Literal["split", "both"]
KINDS: Final[tuple[Kind, ...]] = ("split", "both")
SIZING_S: Final = 0.3
WARM_UP_CELLS: Final = (Cell(32, 1), Cell(1024, 20))
# A trial whose windows came out too short is done again, longer; so often at most.
TRIES_MAX: Final = 4
FAILURES_MAX: Final = 5
SPARE: Final = 1.25  # over what the rates so far ask for, so that a faster moment does not fall short
# Of one topic; a machine's page cache is not endless.
TOPIC_BYTES_MAX: Final = 6 * 1024**3


@dataclass(frozen=True, slots=True)
class Record:
    target: str
    cell: Cell
    repetition: int
    window: Window


class Sizes:
    """How many messages make windows of at least `seconds`, by target, cell and kind, from the rates seen so far."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._messages: dict[tuple[str, Cell, Kind], int] = {}

    def length(self, target: str, cell: Cell, kind: Kind) -> Length:
        messages = self._messages.get((target, cell, kind))
        return Length(None, SIZING_S) if messages is None else Length(messages, None)

    def learn(self, target: str, cell: Cell, kind: Kind, windows: Sequence[Window]) -> bool:
        """Whether the windows were long enough; if not, the next are longer."""
        known = self._messages.get((target, cell, kind), 0)
        if known and min(window.seconds for window in windows) >= self._seconds:
            return True
        wanted = max(window.rate for window in windows) * self._seconds * SPARE
        step = cell.batch_messages * PARTITIONS  # full requests, as many for each partition
        most = TOPIC_BYTES_MAX // cell.message_bytes // step * step
        self._messages[target, cell, kind] = min(most, max(known, math.ceil(wanted / step) * step))
        return known == most


class TooManyFailures(BrokerlabError):
    """Trials fail one after the other: something is broken, and going on would measure nothing."""


class Bench:
    """`records` is what was measured so far, `failed` says which trials came to nothing, and why."""

    def __init__(self, targets: Sequence[Target], who: Clients, seconds: float) -> None:
        self.records: list[Record] = []
        self.failed: list[str] = []
        self._targets = targets
        self._who = who
        self._sizes = Sizes(seconds)
        self._topics = count()
        self._stamp = f"bench-{time.time_ns() // 1_000_000_000}"  # a peer may hold topics of an earlier run

    async def warm_up(self, seconds: float) -> None:
        """Let each target serve for a while: a Java peer compiles what is hot only as it goes."""
        for target in self._targets:
            for cell in WARM_UP_CELLS:
                length = Length(None, seconds / len(WARM_UP_CELLS))
                await Trial(target, self._who, cell, self._topic(), length).both()

    async def run(self, cells: Sequence[Cell], repetitions: int) -> None:
        """Raises `TooManyFailures`; a trial that fails is noted, and the others go on."""
        for repetition in range(repetitions):
            for cell in cells:
                for kind in KINDS:
                    for target in self._in_turn(repetition):
                        try:
                            windows = await self._long_enough(target, cell, kind)
                        except BrokerlabError as error:
                            await self._note(f"{repetition + 1}  {target.name} {cell.name} {kind}: {error}")
                            continue
                        self.records += (Record(target.name, cell, repetition, window) for window in windows)
                        _say(repetition, target, cell, windows)

    async def _note(self, failure: str) -> None:
        print(f"failed: {failure}", flush=True)
        self.failed.append(failure)
        if len(self.failed) >= FAILURES_MAX:
            raise TooManyFailures(f"{len(self.failed)} trials failed, the last: {failure}")
        await self._who.start()

    def _in_turn(self, repetition: int) -> Iterator[Target]:
        """Each repetition begins with another one, so that no target always follows the same."""
        shift = repetition % len(self._targets)
        yield from (*self._targets[shift:], *self._targets[:shift])

    async def _long_enough(self, target: Target, cell: Cell, kind: Kind) -> list[Window]:
        for _ in range(TRIES_MAX):
            length = self._sizes.length(target.name, cell, kind)
            trial = Trial(target, self._who, cell, self._topic(), length)
            windows = await (trial.split() if kind == "split" else trial.both())
            if self._sizes.learn(target.name, cell, kind, windows):
                break
        return windows

    def _topic(self) -> str:
        return f"{self._stamp}-{next(self._topics)}"


def _say(repetition: int, target: Target, cell: Cell, windows: Sequence[Window]) -> None:
    for window in windows:
        print(
            f"{repetition + 1}  {target.name:10} {cell.name:11} {window.mode:8} {window.rate:12,.0f}/s in "
            f"{window.seconds:5.2f} s, brokers {window.broker_cpu_s:5.2f} s CPU, client {window.client_cpu_s:5.2f} s",
            flush=True,
        )

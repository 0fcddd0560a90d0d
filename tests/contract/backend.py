"""What a back end's tests supply: a cluster whose brokers can be started, stopped and killed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Final

from coordinators.model import Broker
from coordinators.registry import CoordinatorSetup

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
    from pathlib import Path

    from coordinators.api import Coordinator
    from coordinators.model import ClusterView

WITHIN_S: Final = 60.0


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that is a coroutine, run on an event loop of its own."""

    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


async def until(coordinator: Coordinator, holds: Callable[[ClusterView], bool]) -> ClusterView:
    """The first view of which `holds` is true; fails when none comes in time."""
    try:
        async with asyncio.timeout(WITHIN_S):
            async for view in coordinator.views():
                if holds(view):
                    return view
    except TimeoutError:
        raise AssertionError(f"no such view within {WITHIN_S:.0f} s; the last is {coordinator.view()}") from None
    raise AssertionError("the views ended first")


async def eventually(holds: Callable[[], bool]) -> None:
    """Return when what nobody tells of has come to be; fails when it does not in time."""
    async with asyncio.timeout(WITHIN_S):
        while not holds():  # noqa: ASYNC110 - there is nothing to wait on
            await asyncio.sleep(0.005)


async def agreed(coordinators: Sequence[Coordinator]) -> None:
    """Return when all views say the same."""
    try:
        await eventually(lambda: len({coordinator.view().fingerprint() for coordinator in coordinators}) == 1)
    except TimeoutError:
        views = "\n".join(str(coordinator.view()) for coordinator in coordinators)
        raise AssertionError(f"these views differ after {WITHIN_S:.0f} s:\n{views}") from None


class MemoryJournal:
    """A broker's journal, kept for its next life."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def append(self, *records: bytes) -> None:
        self.records.extend(records)

    def replay(self) -> Iterator[bytes]:
        return iter(list(self.records))

    def replace(self, records: Iterable[bytes]) -> None:
        self.records = list(records)


class Journals:
    """Of all brokers of a cluster: what an earlier life of a broker wrote, the next one reads."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Broker, str], MemoryJournal] = {}

    def of(self, me: Broker) -> Callable[[str], MemoryJournal]:
        return lambda name: self._kept.setdefault((me, name), MemoryJournal())

    def lose(self, me: Broker) -> None:
        """Nothing is left of what the broker wrote."""
        for key in [key for key in self._kept if key[0] == me]:
            del self._kept[key]


def addressed(broker_id: int) -> Broker:
    return Broker(broker_id, "127.0.0.1", 9000 + broker_id, 9500 + broker_id)


class Backend(ABC):
    """One cluster of brokers 1, 2 and 3 for one test; `folder` is its own.

    `shares`: what happens at one broker shows at the others. `shares_topics`: which topics there are does in any case.
    `passes_leadership`: leadership can change. `keeps_commits`: they survive their broker's process. `passes_commits`:
    a group finds them at the next broker that serves it.
    """

    name: ClassVar[str]
    java: ClassVar[bool] = False
    shares: ClassVar[bool] = True
    shares_topics: ClassVar[bool] = True
    passes_leadership: ClassVar[bool] = True
    keeps_commits: ClassVar[bool] = True
    passes_commits: ClassVar[bool] = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.brokers = tuple(map(addressed, (1, 2, 3)))
        self._journals = Journals()
        self._started: list[Coordinator] = []

    def setup(self, me: Broker, **options: object) -> CoordinatorSetup:
        """With the journals that the broker's earlier lives wrote."""
        return CoordinatorSetup(me, self.brokers, self._journals.of(me), options)

    async def start(self, broker_id: int) -> Coordinator:
        """A started broker. Raises what `Coordinator.start` does."""
        return await self.start_as(next(broker for broker in self.brokers if broker.id == broker_id))

    async def start_as(self, me: Broker) -> Coordinator:
        coordinator = self.made(me)
        self._started.append(coordinator)
        await coordinator.start()
        return coordinator

    async def start_all(self) -> list[Coordinator]:
        """All three, each of which knows the others."""
        started = [await self.start(broker.id) for broker in self.brokers]
        for coordinator in started:
            await until(coordinator, lambda view: len(view.brokers) == len(self.brokers))
        return started

    @abstractmethod
    def made(self, me: Broker) -> Coordinator:
        """A coordinator, not yet started."""

    @abstractmethod
    async def kill(self, coordinator: Coordinator) -> None:
        """End it as SIGKILL would: it tells nobody."""

    async def close(self) -> None:
        for coordinator in self._started:
            await coordinator.stop()

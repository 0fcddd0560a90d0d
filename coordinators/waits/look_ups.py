"""Look-ups: questions about who leads, put to whoever holds the metadata, and the requests that each of them covers.

A request is covered by a question that begins after the request came. So it never gets an older answer than it would
by a question of its own. `SharedLookUps` keeps one question under way for each partition, and the requests that come
during it share the next. `SeparateLookUps` asks once for each request.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING

from coordinators.errors import Unavailable
from coordinators.model import Partition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from coordinators.meter import Meter
    from coordinators.model import TopicPartition

Found = Partition | BaseException
Told = Callable[[Found], None]


class Covered:
    """The requests that one question covers: how many, when they came, and who is told the answer."""

    __slots__ = ("_came_ns", "_requests", "_told")

    def __init__(self) -> None:
        self._told: list[Told] = []
        self._requests = 0
        self._came_ns = 0  # the sum of all

    def add(self, requests: int, told: Told) -> None:
        self._told.append(told)
        self._requests += requests
        self._came_ns += requests * monotonic_ns()

    def tell(self, found: Found, meter: Meter) -> None:
        meter.called("lookup", self._requests * monotonic_ns() - self._came_ns, calls=self._requests)
        for told in self._told:
            told(found)


class LookUps(ABC):
    """`ask` puts a question, and `fault` says why no answer counts now."""

    def __init__(
        self,
        ask: Callable[[TopicPartition], Awaitable[Partition]],
        fault: Callable[[], Unavailable | None],
        meter: Meter,
    ) -> None:
        self._ask = ask
        self._fault = fault
        self._meter = meter

    @abstractmethod
    def find(self, at: TopicPartition, requests: int, told: Told) -> None:
        """Ask for so many requests that came just now. `told` hears the answer or the error in a later turn of the
        event loop."""

    def _answered(self, covered: Covered, done: asyncio.Future[Partition]) -> None:
        found: Found
        if done.cancelled():
            found = Unavailable("this broker is stopping")
        else:
            found = done.exception() or self._fault() or done.result()
        covered.tell(found, self._meter)


class SharedLookUps(LookUps):
    """One question under way for each partition."""

    def __init__(
        self,
        ask: Callable[[TopicPartition], Awaitable[Partition]],
        fault: Callable[[], Unavailable | None],
        meter: Meter,
    ) -> None:
        super().__init__(ask, fault, meter)
        self._under_way: dict[TopicPartition, asyncio.Future[Partition]] = {}
        self._next: dict[TopicPartition, Covered] = {}

    def find(self, at: TopicPartition, requests: int, told: Told) -> None:
        covered = self._next.get(at)
        if covered is not None:
            covered.add(requests, told)
            return
        covered = Covered()
        covered.add(requests, told)
        if at in self._under_way:
            self._next[at] = covered
        else:
            self._begin(at, covered)

    def _begin(self, at: TopicPartition, covered: Covered) -> None:
        question = self._ask(at)
        if not isinstance(question, asyncio.Future):
            question = asyncio.ensure_future(question)
        self._under_way[at] = question
        question.add_done_callback(partial(self._over, at, covered))

    def _over(self, at: TopicPartition, covered: Covered, done: asyncio.Future[Partition]) -> None:
        following = self._next.pop(at, None)
        if following is None:
            del self._under_way[at]
        else:
            self._begin(at, following)
        self._answered(covered, done)


class SeparateLookUps(LookUps):
    """A question for each request; requests that come together are told when all theirs are answered."""

    def find(self, at: TopicPartition, requests: int, told: Told) -> None:
        covered = Covered()
        covered.add(requests, told)
        questions = [asyncio.ensure_future(self._ask(at)) for _ in range(requests)]
        question = questions[0] if requests == 1 else asyncio.ensure_future(_last(questions))
        question.add_done_callback(partial(self._answered, covered))


async def _last(questions: Sequence[asyncio.Future[Partition]]) -> Partition:
    """The newest answer. Raises what the first to fail raises."""
    return (await asyncio.gather(*questions))[-1]

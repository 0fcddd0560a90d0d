"""What coordination costs: counted in one place, by kind, for every architecture alike."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic_ns
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

T = TypeVar("T")


@dataclass(slots=True)
class Cost:
    """`calls` of the contract's verbs and what callers waited for them; `requests` that left the broker, and bytes."""

    calls: int = 0
    requests: int = 0
    bytes: int = 0
    wait_ns: int = 0


class Waiters:
    """Calls of a verb that wait for one and the same future; they are counted when it is over."""

    def __init__(self, meter: Meter, kind: str, awaited: asyncio.Future[None]) -> None:
        self._meter = meter
        self._kind = kind
        self.awaited = awaited
        self._calls = self._since_ns = 0
        awaited.add_done_callback(self._over)

    def add(self, since_ns: int) -> None:
        self._calls += 1
        self._since_ns += since_ns

    def _over(self, _: asyncio.Future[None]) -> None:
        self._meter.called(self._kind, self._calls * monotonic_ns() - self._since_ns, calls=self._calls)


class Meter:
    """Kind -> cost. Verbs count their calls and waiting (`Coordinator` does); whoever sends counts what it sends.

    A kind is a verb (`lookup`, `commit`, ...) or what a back end sends of its own accord (`heartbeat`, `push`, ...).
    A verb that is answered in the broker's memory has calls and no requests.
    """

    def __init__(self) -> None:
        self._costs: dict[str, Cost] = {}
        self._waiters: Waiters | None = None

    def of(self, kind: str) -> Cost:
        """The row of a kind, to be counted up in place."""
        cost = self._costs.get(kind)
        if cost is None:
            cost = self._costs[kind] = Cost()
        return cost

    def called(self, kind: str, wait_ns: int, *, calls: int = 1) -> None:
        """Count calls, and the time that all of them waited."""
        cost = self.of(kind)
        cost.calls += calls
        cost.wait_ns += wait_ns

    async def waited(self, kind: str, work: Awaitable[T]) -> T:
        """Await `work` and count it with the time that it took."""
        start = monotonic_ns()
        try:
            return await work
        finally:
            self.called(kind, monotonic_ns() - start)

    def waits(self, kind: str, awaited: asyncio.Future[None], since_ns: int) -> None:
        """Count a call that waits since then, when what it waits for is over. Several may wait for the same."""
        if self._waiters is None or self._waiters.awaited is not awaited:
            self._waiters = Waiters(self, kind, awaited)
        self._waiters.add(since_ns)

    def sent(self, kind: str, size_bytes: int, *, requests: int = 1) -> None:
        """Count messages to others and their bytes; an answer's bytes are counted with `requests=0`."""
        cost = self.of(kind)
        cost.requests += requests
        cost.bytes += size_bytes

    def snapshot(self) -> dict[str, tuple[int, int, int]]:
        """Kind -> (requests, bytes, wait_ns)."""
        return {kind: (cost.requests, cost.bytes, cost.wait_ns) for kind, cost in self._costs.items()}

    def calls(self) -> dict[str, int]:
        """Verb -> how often it was called."""
        return {kind: cost.calls for kind, cost in self._costs.items() if cost.calls}

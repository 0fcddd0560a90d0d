"""The costs of a timed window: the counters of every process and broker, read before it and behind it.

The brokers themselves are asked outside it: before the first reading of their processes, after the last.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from workloads.measure import sockets
from workloads.measure.resources import Usage, reset_peak, usage_of
from workloads.processes.java import collector_pause_s

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

    from workloads.clients.drivers.api import BrokerStatistics
    from workloads.measure.sockets import Connections
    from workloads.processes.process import Process
    from workloads.trial.record import Place

    _Pairs = Sequence[tuple[str, BrokerStatistics, BrokerStatistics]]  # a node's counters, earlier and later

T = TypeVar("T")
_Counters = dict[str, Any]  # a row, as the schema of the raw records has it


@dataclass(slots=True)
class Costs:
    """Rows of a trial, as the schema of the raw records has them; None where the system counts nothing of the kind."""

    resources: list[_Counters] = field(default_factory=list)
    coordination: list[_Counters] | None = None
    broker_requests: list[_Counters] | None = None

    def drop(self, numbers: Collection[int]) -> None:
        """Forget windows."""
        for rows in (self.resources, self.coordination or [], self.broker_requests or []):
            rows[:] = [row for row in rows if row["number"] not in numbers]


@dataclass(frozen=True, slots=True)
class _Reading:
    """The counters of one process."""

    usage: Usage
    connections: Connections
    collector_pause_s: float | None


class Meter:
    """Reads the counters of one window. `processes` has role and process by name; `statistics` asks the brokers."""

    def __init__(
        self,
        processes: Mapping[str, tuple[str, Process]],
        statistics: Callable[[], Awaitable[Sequence[BrokerStatistics]]],
    ) -> None:
        self._processes = processes
        self._statistics = statistics
        self._before: Mapping[str, _Reading] = {}
        self._earlier: Sequence[BrokerStatistics] = ()

    async def begin(self) -> None:
        """Raises `ProcessFailed` where a process has ended."""
        for _, process in self._processes.values():
            await _of(process, reset_peak)
        self._earlier = await self._statistics()
        self._before = await self._readings(self._processes)

    async def end(self, at: Place, wall_s: float, costs: Costs, without: Collection[str] = ()) -> None:
        """Add what the window cost to `costs`, `without` the processes that were ended in it on purpose. Raises
        `ProcessFailed` where another has ended."""
        window = {"number": at.number, "window": at.window}
        names = [name for name in self._processes if name not in without]
        after = await self._readings(names)
        later = {f"broker-{now.broker}": now for now in await self._statistics()}
        earlier = {f"broker-{before.broker}": before for before in self._earlier}
        counted = {name: (earlier[name], later[name]) for name in later if name in earlier and name not in without}
        for name in names:
            row = {"role": self._processes[name][0], "node": name, **window, "wall_s": wall_s}
            used = _used(self._before[name], after[name])
            costs.resources.append({**row, **used, "coordination_cpu_s": _coordination_cpu_s(*counted.get(name, ()))})
        pairs = [(name, *both) for name, both in counted.items()]
        if counted:
            costs.coordination = [*(costs.coordination or ()), *_coordination(window, pairs)]
            costs.broker_requests = [*(costs.broker_requests or ()), *_broker_requests(window, pairs)]

    async def _readings(self, names: Collection[str]) -> dict[str, _Reading]:
        processes = {name: self._processes[name][1] for name in names}
        usage = {name: await _of(process, usage_of) for name, process in processes.items()}
        known = sockets.connections()
        return {
            name: _Reading(
                usage[name],
                await _of(process, lambda pid: sockets.of_process(pid, known)),
                collector_pause_s(process.log),
            )
            for name, process in processes.items()
        }


def _used(before: _Reading, after: _Reading) -> _Counters:
    traffic = sockets.traffic_between(before.connections, after.connections)
    pause_s = after.collector_pause_s
    return {
        **asdict(after.usage.since(before.usage)),
        "received_bytes": traffic and traffic.received,
        "sent_bytes": traffic and traffic.sent,
        "gc_pause_s": None if pause_s is None else pause_s - (before.collector_pause_s or 0.0),
    }


def _coordination_cpu_s(before: BrokerStatistics | None = None, now: BrokerStatistics | None = None) -> float | None:
    return None if before is None or now is None else (now.coordination_cpu_ns - before.coordination_cpu_ns) / 1e9


def _coordination(window: _Counters, pairs: _Pairs) -> Iterator[_Counters]:
    for node, earlier, later in pairs:
        for operation, (count, size, wait_ns) in _grown(later.coordination, earlier.coordination):
            row = {"operation": operation, "count": count, "bytes": size, "wait_s": wait_ns / 1e9}
            yield {"node": node, **window, **row}


def _broker_requests(window: _Counters, pairs: _Pairs) -> Iterator[_Counters]:
    for node, earlier, later in pairs:
        for operation, (requests, messages, size) in _grown(later.operations, earlier.operations):
            row = {"operation": operation, "requests": requests, "messages": messages, "bytes": size}
            yield {"node": node, **window, **row}


def _grown(
    later: Mapping[str, tuple[int, int, int]], earlier: Mapping[str, tuple[int, int, int]]
) -> list[tuple[str, tuple[int, int, int]]]:
    """The increase of each counter; counters that did not move are left out."""
    found = []
    for name, (a, b, c) in later.items():
        x, y, z = earlier.get(name, (0, 0, 0))
        if (a, b, c) != (x, y, z):
            found.append((name, (a - x, b - y, c - z)))
    return found


async def _of(process: Process, read: Callable[[int], T]) -> T:
    """The kernel's counters of a process. Raises `ProcessFailed` where it has ended."""
    try:
        return read(process.pid)
    except ProcessLookupError:
        await process.ended()
        raise process.failure() from None

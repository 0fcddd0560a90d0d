"""The partitions that requests name, before their leaders are known: what to ask for, once for all of a read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokers.listeners.dispatch import read_fetch
from brokers.wire.apis import produce as produce_wire
from brokers.wire.apis.table import ApiKey
from brokers.wire.errors import Malformed
from coordinators.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brokers.listeners.events import Requests
    from brokers.listeners.requests.produce import Run

_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2)
_FETCH: Final = ApiKey.FETCH.to_bytes(2)


def named(requests: Requests, run: Run) -> dict[TopicPartition, int]:
    """How many of those that are not begun name each partition whose leader matters to them. What is malformed is so in
    its turn: it names nothing, nor do those behind it."""
    found: dict[TopicPartition, int] = {}
    first = _of_row(requests, run, found)
    try:
        for start, end in requests.frames[first:]:
            for at in _of_one(requests, run, start, end):
                found[at] = found.get(at, 0) + 1
    except Malformed:
        return found
    return found


def _of_row(requests: Requests, run: Run, found: dict[TopicPartition, int]) -> int:
    """Name what a row of produce requests does, in one go; the number of the first request behind it."""
    number, count = requests.number, requests.alike - requests.number
    if count > 0:
        start, end = requests.frames[number]
        produces = requests.data.startswith(_PRODUCE, start)
        route = run.route_of_row(requests.data, requests.view, start, end, count) if produces else None
        if route is not None:
            found[route.target.at] = count
            return requests.alike
    return number


def _of_one(requests: Requests, run: Run, start: int, end: int) -> Iterable[TopicPartition]:
    """Raises `Malformed`."""
    if requests.data.startswith(_PRODUCE, start):
        route = run.route(requests.data, requests.view, start)
        if route is not None:
            return (route.target.at,)
        parts = produce_wire.read(requests.data, start, end).parts
        return {TopicPartition(part.topic, part.partition) for part in parts}
    if requests.data.startswith(_FETCH, start):
        fetch = requests.fetches.get(start)
        if fetch is None:
            fetch = requests.fetches[start] = read_fetch(bytes(requests.view[start:end]))
        return {TopicPartition(part.topic, part.partition) for part in fetch.parts}
    return ()

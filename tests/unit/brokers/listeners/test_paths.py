"""Requests take the same way through a broker whether it knows who leads or has to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brokers.listeners.dispatch import Dispatch
from brokers.listeners.requests.produce import Run
from brokers.listeners.requests.targets import Route
from brokers.log.log import Log
from brokers.wire.apis import produce as wire
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from tests.integration.kafka.raw import batch, fetch_request, fetched, produce_request, produced
from tests.unit.brokers.listeners.harness import Client, listening, run

WHOLE_READ = 40


class Asks(StaticCoordinator):
    def __init__(self, setup: CoordinatorSetup) -> None:
        super().__init__(CoordinatorSetup(setup.me, setup.brokers, setup.journal, {"metadata": "lookup"}))


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often requests pass each place of the path."""
    passed: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str, counts: Callable[[Any], int] = lambda result: 1) -> None:
        original = getattr(owner, name)

        def noted(*given: Any, **named: Any) -> Any:
            result = original(*given, **named)
            passed[what] += counts(result)
            return result

        monkeypatch.setattr(owner, name, noted)

    count(Run, "take_row", "rows", bool)
    count(Route, "answer", "through a route")
    count(Route, "answers", "rows answered")
    count(wire, "read", "read one by one")
    count(Log, "append", "appends")
    count(Log, "append_row", "appends of a row")
    count(Dispatch, "carry_out", "dispatched")
    return passed


async def traffic(client: Client) -> None:
    """One read after the other; the first of each kind makes the routes."""
    for partition in (0, 1):
        client.send(produce_request("two", batch(b"first"), partition=partition))
        await client.receive()
    client.send(*(produce_request("two", batch(b"v"), correlation_id=n) for n in range(WHOLE_READ)))
    assert [produced(answer)[1] for answer in await client.receive_all(WHOLE_READ)] == list(range(1, WHOLE_READ + 1))
    frames = [produce_request("two", batch(b"v" * (n + 1)), partition=n % 2) for n in range(WHOLE_READ)]
    client.send(*frames)
    await client.receive_all(WHOLE_READ)
    for offset in range(5):
        client.send(fetch_request("two", offset))
        assert fetched(await client.receive())[2]


def test_a_broker_that_asks_reads_appends_and_answers_as_one_that_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = counted(monkeypatch)
    found: dict[type[StaticCoordinator], Counter[str]] = {}

    async def work(kind: type[StaticCoordinator]) -> None:
        async with listening(tmp_path / kind.__name__, kind=kind) as harness:
            await traffic(await harness.connect())
            assert ("lookup" in harness.coordinator.meter.calls()) is (kind is Asks)
        found[kind] = Counter(passed)
        passed.clear()

    for kind in (StaticCoordinator, Asks):
        run(work(kind))
    knows, asks = found[StaticCoordinator], found[Asks]
    assert knows["rows"] >= 1
    assert knows["through a route"] >= WHOLE_READ - 1
    read_before_the_answer = asks.pop("read one by one") - knows.pop("read one by one")
    assert read_before_the_answer <= 4, "the first request to each partition, to know what to ask"
    assert asks == knows

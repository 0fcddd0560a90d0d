"""A leadership that was answered is confirmed at the moment of the append, and who must be in sync is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from brokers.wire.errors import ErrorCode
from coordinators.errors import Unavailable
from coordinators.model import TopicSettings
from coordinators.registry import CoordinatorSetup
from coordinators.static.coordinator import StaticCoordinator
from tests.integration.kafka.raw import batch, fetch_request, fetched, produce_request, produced
from tests.unit.brokers.listeners.harness import HeldBack, listening, run, turn, until

MANY_TURNS = 100


def test_a_look_up_that_waited_behind_another_request_is_made_again_where_the_leadership_may_have_passed(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client, other = await harness.connect(), await harness.connect()
            client.send(fetch_request("one", 0, wait_ms=20_000), produce_request("one", batch(b"a")))
            await until(lambda: len(coordinator.asked) == 1)
            coordinator.release(0)
            held = harness.store.partition("one", 0)
            assert held is not None
            await until(lambda: held.waiters)
            coordinator.tenure += 1  # as after another session, in which another may have been elected
            other.send(produce_request("one", batch(b"b")))
            await until(lambda: len(coordinator.asked) == 2)
            coordinator.release(1)
            assert produced(await other.receive()) == (0, 0)
            error, _, records = fetched(await client.receive())
            assert (error, records) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, b"")
            await until(lambda: len(coordinator.asked) == 3)
            assert held.log.end_offset == 1, "nothing is appended by the answer of before"
            coordinator.release(2)
            assert produced(await client.receive()) == (0, 1)

    run(work())


def test_what_waited_until_the_lease_ended_is_neither_appended_nor_read(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(fetch_request("one", 0, wait_ms=200), produce_request("one", batch(b"a")))
            await until(lambda: len(coordinator.asked) == 1)
            coordinator.release(0)
            held = harness.store.partition("one", 0)
            assert held is not None
            await until(lambda: held.waiters)
            coordinator.lease = 0.0
            assert fetched(await client.receive())[0] == ErrorCode.LEADER_NOT_AVAILABLE
            assert produced(await client.receive()) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert held.log.end_offset == 0

    run(work())


def test_a_failed_look_up_takes_no_answer_from_other_requests_of_its_read(tmp_path: Path) -> None:
    async def work() -> None:
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(*(produce_request("two", batch(b"v%d" % n), partition=n % 2) for n in range(4)))
            await until(lambda: len(coordinator.asked) == 2)
            coordinator.asked[1][1].set_exception(Unavailable("the metadata is away"))
            for _ in range(MANY_TURNS):
                await turn()
            assert harness.metrics.produce.requests == 0, "they wait together"
            coordinator.release(0)
            answers = [produced(await client.receive()) for _ in range(4)]
            refused = (ErrorCode.LEADER_NOT_AVAILABLE, -1)
            assert answers == [(0, 0), refused, (0, 1), refused]

    run(work())


def test_a_look_up_that_meets_what_nobody_thought_of_ends_the_connection(tmp_path: Path) -> None:
    async def work() -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["message"]))
        async with listening(tmp_path, kind=HeldBack) as harness:
            coordinator = harness.coordinator
            assert isinstance(coordinator, HeldBack)
            client = await harness.connect()
            client.send(produce_request("one", batch(b"v")))
            await until(lambda: coordinator.asked)
            coordinator.asked[0][1].set_exception(ZeroDivisionError())
            assert await client.ended()
        assert reported == ["a look-up failed"]

    run(work())


class Stopped(StaticCoordinator):
    """A process that is stopped, as often as the test says, right behind its look at who leads."""

    def __init__(self, setup: CoordinatorSetup) -> None:
        super().__init__(setup)
        self.stops = False

    def serves(self) -> bool:
        return not self.stops


@pytest.mark.parametrize("number", [1, 8])
def test_a_process_that_was_stopped_between_look_and_append_appends_nothing(tmp_path: Path, number: int) -> None:
    """One request, and a row of them."""

    async def work() -> None:
        async with listening(tmp_path, kind=Stopped) as harness:
            assert isinstance(harness.coordinator, Stopped)
            client = await harness.connect()
            client.send(produce_request("one", batch(b"first")))
            assert produced(await client.receive()) == (0, 0)
            harness.coordinator.stops = True
            client.send(*[produce_request("one", batch(b"v")) for _ in range(number)])
            answers = await client.receive_all(number)
            assert {produced(answer) for answer in answers} == {(ErrorCode.LEADER_NOT_AVAILABLE, -1)}
            harness.coordinator.stops = False
            client.send(produce_request("one", batch(b"last")))
            assert produced(await client.receive()) == (0, 1)

    run(work())


@pytest.mark.parametrize("number", [1, 8])
def test_who_asks_for_all_replicas_in_sync_is_refused_where_too_few_are(tmp_path: Path, number: int) -> None:
    async def work() -> None:
        async with listening(tmp_path) as harness:
            await harness.listener._service.topics.create("safe", 1, 1, TopicSettings(min_insync_replicas=2))
            client = await harness.connect()
            expected = 0
            for acks in (1, -1, 1, -1):
                client.send(*[produce_request("safe", batch(b"v"), acks=acks) for _ in range(number)])
                found = [produced(answer) for answer in await client.receive_all(number)]
                if acks == 1:
                    assert found == [(0, expected + n) for n in range(number)]
                    expected += number
                else:
                    assert found == [(ErrorCode.NOT_ENOUGH_REPLICAS, -1)] * number
            client.send(*[produce_request("one", batch(b"v"), acks=-1) for _ in range(number)])
            found = [produced(answer) for answer in await client.receive_all(number)]
            assert found == [(0, n) for n in range(number)], "one is enough where nobody says more"

    run(work())

"""Which look-up covers which request, what is counted, and whom an error reaches."""

from __future__ import annotations

import asyncio

import pytest

from coordinators.errors import Unavailable, UnknownTopic
from coordinators.meter import Meter
from coordinators.model import Partition, TopicPartition
from coordinators.waits.look_ups import Found, LookUps, SeparateLookUps, SharedLookUps
from tests.contract.backend import asynchronous

AT, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


def led_by(broker: int) -> Partition:
    return Partition(replicas=(1, 2), leader=broker, epoch=0, in_sync=(broker,))


class Asked:
    """Whoever holds the metadata: each question waits for the test."""

    def __init__(self, kind: type[LookUps]) -> None:
        self.questions: list[tuple[TopicPartition, asyncio.Future[Partition]]] = []
        self.fault: Unavailable | None = None
        self.meter = Meter()
        self.look_ups = kind(self._ask, lambda: self.fault, self.meter)
        self.told: dict[str, Found] = {}

    def _ask(self, at: TopicPartition) -> asyncio.Future[Partition]:
        answer: asyncio.Future[Partition] = asyncio.get_running_loop().create_future()
        self.questions.append((at, answer))
        return answer

    def find(self, name: str, at: TopicPartition = AT, requests: int = 1) -> None:
        def told(found: Found) -> None:
            assert name not in self.told
            self.told[name] = found

        self.look_ups.find(at, requests, told)

    async def answer(self, number: int, found: Found) -> None:
        _, answer = self.questions[number]
        if isinstance(found, Partition):
            answer.set_result(found)
        else:
            answer.set_exception(found)
        for _ in range(5):
            await asyncio.sleep(0)


@asynchronous
async def test_a_request_that_comes_while_a_question_is_under_way_waits_for_the_next() -> None:
    asked = Asked(SharedLookUps)
    asked.find("first")
    asked.find("second")
    assert len(asked.questions) == 1
    await asked.answer(0, led_by(1))
    assert asked.told == {"first": led_by(1)}, "an answer from before the second came does not cover it"
    assert len(asked.questions) == 2
    await asked.answer(1, led_by(2))
    assert asked.told == {"first": led_by(1), "second": led_by(2)}
    asked.find("third")
    assert len(asked.questions) == 3, "and none is under way for nobody"


@asynchronous
async def test_a_thousand_requests_that_come_during_one_question_share_the_next() -> None:
    asked = Asked(SharedLookUps)
    asked.find("first")
    for number in range(1000):
        asked.find(f"later-{number}")
    await asked.answer(0, led_by(1))
    await asked.answer(1, led_by(2))
    assert len(asked.questions) == 2
    assert [asked.told[f"later-{number}"] for number in range(1000)] == [led_by(2)] * 1000
    assert asked.meter.calls() == {"lookup": 1001}, "each of them asked, and each has waited"


@asynchronous
async def test_partitions_are_asked_for_side_by_side() -> None:
    asked = Asked(SharedLookUps)
    asked.find("one", AT)
    asked.find("other", OTHER)
    assert [at for at, _ in asked.questions] == [AT, OTHER]
    await asked.answer(1, led_by(2))
    assert asked.told == {"other": led_by(2)}


@asynchronous
async def test_an_error_reaches_all_that_its_question_covers_and_no_others() -> None:
    asked = Asked(SharedLookUps)
    for name in ("first", "second", "third"):
        asked.find(name)
    await asked.answer(0, led_by(1))
    asked.find("fourth")
    gone = UnknownTopic("orders-0 does not exist")
    await asked.answer(1, gone)
    await asked.answer(2, led_by(2))
    assert asked.told == {"first": led_by(1), "second": gone, "third": gone, "fourth": led_by(2)}


@pytest.mark.parametrize("kind", [SharedLookUps, SeparateLookUps])
@asynchronous
async def test_an_answer_that_came_too_late_to_count_is_an_error(kind: type[LookUps]) -> None:
    asked = Asked(kind)
    asked.find("late")
    asked.fault = Unavailable("the lease has ended")
    await asked.answer(0, led_by(1))
    assert asked.told == {"late": asked.fault}


@pytest.mark.parametrize("kind", [SharedLookUps, SeparateLookUps])
@asynchronous
async def test_a_question_that_is_given_up_is_answered_with_what_clients_retry(kind: type[LookUps]) -> None:
    asked = Asked(kind)
    asked.find("stopped")
    asked.questions[0][1].cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert isinstance(asked.told["stopped"], Unavailable)


@asynchronous
async def test_the_time_of_each_request_that_waits_is_counted() -> None:
    asked = Asked(SharedLookUps)
    asked.find("alone")
    asked.find("many", requests=100)
    await asked.answer(0, led_by(1))
    alone_ns = asked.meter.snapshot()["lookup"][2]
    await asked.answer(1, led_by(1))
    many_ns = asked.meter.snapshot()["lookup"][2] - alone_ns
    assert asked.meter.calls() == {"lookup": 101}
    assert many_ns >= 100 * alone_ns, "they came when the first did, or after it, and waited longer"


@asynchronous
async def test_separate_look_ups_ask_once_for_each_request_and_tell_those_that_came_together_together() -> None:
    asked = Asked(SeparateLookUps)
    asked.find("first")
    asked.find("three", requests=3)
    assert len(asked.questions) == 4
    for number in (1, 2):
        await asked.answer(number, led_by(1))
    assert asked.told == {}
    await asked.answer(3, led_by(2))
    await asked.answer(0, led_by(1))
    assert asked.told == {"three": led_by(2), "first": led_by(1)}
    assert asked.meter.calls() == {"lookup": 4}

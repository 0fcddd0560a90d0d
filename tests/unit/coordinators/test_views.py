from __future__ import annotations

import asyncio

from coordinators.model import Broker, Partition, Topic
from coordinators.views import Views
from tests.contract.backend import asynchronous

BROKER = Broker(1, "h", 1, 2)
TOPIC = Topic("orders", (Partition((1,), 1, 0, (1,)),))


def test_a_view_that_says_nothing_new_is_not_published() -> None:
    views = Views()
    views.publish(brokers={1: BROKER})
    before = views.present
    views.publish(brokers={1: BROKER}, topics={}, controller=-1)
    assert views.present is before
    assert before.version == 1


def test_what_is_published_does_not_change_with_what_it_was_made_of() -> None:
    views, topics = Views(), {"orders": TOPIC}
    views.publish(topics=topics)
    topics.clear()
    assert views.present.topics == {"orders": TOPIC}


@asynchronous
async def test_who_follows_sees_the_newest_of_several() -> None:
    views = Views()
    following = views.follow()
    await anext(following)
    views.publish(brokers={1: BROKER})
    views.publish(topics={"orders": TOPIC})
    assert (await anext(following)) == views.present


@asynchronous
async def test_a_view_published_while_the_last_one_is_looked_at_is_not_missed() -> None:
    views, seen = Views(), []
    async for view in views.follow():
        seen.append(view.version)
        if view.version < 3:
            views.publish(controller=view.version)
        else:
            views.close()
    assert seen == [0, 1, 2, 3]


@asynchronous
async def test_closing_ends_those_who_wait() -> None:
    views = Views()

    async def count() -> int:
        return len([view async for view in views.follow()])

    waiting = [asyncio.create_task(count()) for _ in range(3)]
    await asyncio.sleep(0)
    views.close()
    assert await asyncio.gather(*waiting) == [1, 1, 1]


def test_a_fingerprint_is_of_what_is_known_and_not_of_how_it_came_to_be() -> None:
    one, other = Views(), Views()
    one.publish(brokers={1: BROKER})
    one.publish(topics={"orders": TOPIC, "a": TOPIC})
    other.publish(topics={"a": TOPIC, "orders": TOPIC}, brokers={1: BROKER}, controller=1)
    assert one.present.version != other.present.version
    assert one.present.fingerprint() == other.present.fingerprint()
    other.publish(topics={"a": TOPIC})
    assert one.present.fingerprint() != other.present.fingerprint()

"""Who leads, of topics that are made, deleted and made again: found by asking, and by what watches tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from coordinators.model import TopicPartition
from coordinators.views import Views
from coordinators.zookeeper.leaders import Leaders
from coordinators.zookeeper.mirror import Mirror
from tests.contract.backend import asynchronous, until
from tests.contract.backends.zookeeper import session_of
from tests.integration.zookeeper.brokers import Group, group, led

if TYPE_CHECKING:
    from tests.contract.servers import Server

pytestmark = pytest.mark.java
AT = TopicPartition("orders", 0)


class CountedViews(Views):
    published = 0

    def publish(self, **what: Any) -> None:
        self.published += 1
        super().publish(**what)


async def looking(brokers: Group) -> tuple[Mirror, CountedViews, Leaders]:
    """What follows nothing by itself: it has read what it is told to read."""
    session, views = await brokers.session(), CountedViews()
    mirror = Mirror(session, brokers.tree)
    return mirror, views, Leaders(session, brokers.tree, mirror, views)


@asynchronous
async def test_a_topic_whose_leader_is_found_is_in_the_view_though_the_rest_is_still_being_read(server: Server) -> None:
    async with group(server.address) as brokers:
        maker = await brokers.start(1)
        await maker.create_topic("orders", 1, 1)
        mirror, views, leaders = await looking(brokers)
        await mirror.topics.read_topic("orders")
        assert "orders" not in views.present.topics
        await leaders.find(AT)
        assert "orders" in views.present.topics


@asynchronous
async def test_a_topic_made_again_is_found_as_such_though_no_watch_has_told_of_it(server: Server) -> None:
    """Else a message could be acknowledged into the log of the topic that was deleted, and go with it."""
    async with group(server.address) as brokers:
        asks, other = await brokers.start(1, metadata="lookup"), await brokers.start(2)
        await until(asks, lambda view: 2 in view.brokers)
        await other.create_topic("orders", 1, 1)
        former = (await until(asks, lambda view: "orders" in view.topics)).topic("orders").life
        session_of(asks).on_watch = lambda path: None
        for _ in range(3):
            await other.delete_topic("orders")
            made = (await other.create_topic("orders", 1, 1)).topic
            await led(asks, AT)
            assert asks.view().topic("orders").life == made.life != former


@asynchronous
async def test_looking_up_what_the_view_has_makes_no_view(server: Server) -> None:
    """Each request is looked up, and a view is all topics: read again they are equal, though not the same objects."""
    async with group(server.address) as brokers:
        maker = await brokers.start(1)
        await maker.create_topic("orders", 1, 1)
        mirror, views, leaders = await looking(brokers)
        await leaders.find(AT)
        await mirror.topics.read_topic("orders")
        assert views.published == 1
        for _ in range(3):
            await leaders.find(AT)
        assert views.published == 1


@asynchronous
async def test_topics_made_again_in_quick_succession_are_told_apart_by_who_watches(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with group(server.address) as brokers:
        watching, other = await brokers.start(1), await brokers.start(2)
        for _ in range(20):
            for name in ("orders", "clicks"):
                made = (await other.create_topic(name, 3, 1)).topic
                await other.delete_topic(name)
        made = (await other.create_topic("orders", 1, 1)).topic
        view = await until(watching, lambda view: "orders" in view.topics and view.topics["orders"] == made)
        assert view.topics.keys() == {"orders"}
        assert not [record for record in caplog.records if record.levelname == "ERROR"], "nothing is wrong in the tree"

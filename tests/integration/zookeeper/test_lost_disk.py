"""A broker that comes back without its disk, through ZooKeeper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coordinators.model import TopicPartition
from tests.contract.backend import asynchronous, until
from tests.contract.backends.zookeeper import session_of
from tests.integration.zookeeper.brokers import group, knows, led

if TYPE_CHECKING:
    from coordinators.zookeeper.requests import Listing
    from tests.contract.servers import Server

pytestmark = pytest.mark.java


@asynchronous
async def test_a_broker_that_lost_its_disk_leads_nothing_that_it_held(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """Defence: who enters with a new disk gives up what the tree says that it has. Else it leads over an empty log."""
    async with group(server.address) as brokers:
        first, second = await brokers.start(1), await brokers.start(2)
        creation = await first.create_topic("orders", 2, 2)
        held = TopicPartition("orders", next(n for n, at in enumerate(creation.topic.partitions) if at.leader == 2))
        await second.stop()
        for _ in range(2):  # nor does it when it starts once more
            await until(first, lambda view: view.partition(held).leader == -1)
            brokers.forget(2)
            again = await brokers.start(2)
            await knows(again, "orders")
            for broker in (first, again):
                found = await led(broker, held)
                assert (found.leader, found.in_sync) == (-1, ())
            assert "broker 2 has lost its disk, and with it what was in 1 partitions: orders-" in caplog.text
            await again.stop()
        back = await brokers.start(2)
        await back.create_topic("clicks", 2, 2)
        assert {at.leader for at in back.view().topics["clicks"].partitions} == {1, 2}, (
            "of what is new it leads its part"
        )


@asynchronous
async def test_a_new_broker_leads_what_is_made_while_it_enters(server: Server) -> None:
    """What is younger than its registration it has not lost."""
    async with group(server.address) as brokers:
        first = await brokers.start(1)
        joining = brokers.made(2)
        session = session_of(joining)
        listing = session.listing

        async def make_and_list(kind: str, path: str) -> Listing | None:
            """The first that it reads when it is registered."""
            session.listing = listing  # type: ignore[method-assign]
            await first.create_topic("orders", 2, 1)
            return await listing(kind, path)

        session.listing = make_and_list  # type: ignore[method-assign]
        await joining.start()
        assert {at.leader for at in joining.view().topics["orders"].partitions} == {1, 2}

"""The hazards of coordination through ZooKeeper (docs/coordination.md), by their numbers there. Each test names the
defence that it fails without. Hazard 4, the disk that is full, is the log's and the journal's (unit/brokers/log)."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING

import pytest

from coordinators.errors import BrokerIdTaken, CoordinationError, StaleEpoch, Unavailable
from coordinators.model import Committed, TopicPartition
from coordinators.zookeeper import client, znodes
from coordinators.zookeeper.handler import Handler
from coordinators.zookeeper.requests import Changed, Conflict, Delete, Node, Write
from tests.contract.backend import WITHIN_S, addressed, asynchronous, eventually, until
from tests.contract.backends.zookeeper import end_session, session_of
from tests.integration.zookeeper.brokers import Clock, group, knows, led

if TYPE_CHECKING:
    from coordinators.model import Partition
    from coordinators.zookeeper.coordinator import ZooKeeperCoordinator
    from coordinators.zookeeper.requests import Listing, Operation
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree
    from tests.contract.servers import Server
    from tests.integration.zookeeper.proxy import Proxy

pytestmark = pytest.mark.java
AT = TopicPartition("orders", 0)


async def refused(coordinator: ZooKeeperCoordinator) -> None:
    """Return when the broker says of itself that it leads no more."""
    await eventually(lambda: not leading(coordinator))


def leading(coordinator: ZooKeeperCoordinator) -> bool:
    try:
        coordinator.known_leader(AT)
    except Unavailable:
        return False
    return True


def abandon(coordinator: ZooKeeperCoordinator) -> None:
    """SIGKILL, as the server sees it: the connection breaks and the session goes on until its timeout."""
    session_of(coordinator).client.abandon()


# --- 1: kazoo's state is not a lease ---------------------------------------------------------------------------------


@asynchronous
async def test_1_a_leader_that_is_cut_off_stops_before_its_place_is_given_away_while_kazoo_says_connected(
    server: Server, proxy: Proxy
) -> None:
    """Defence: `Session.lease_ends`, anchored at the sending of the last request that was answered."""
    async with group(server.address) as brokers:
        leader = await brokers.start(1, connect=proxy.address)
        await leader.create_topic("orders", 1, 1)
        observer = await brokers.start(2)
        proxy.silence()
        busy = asyncio.create_task(_keep_asking(leader))
        await refused(leader)
        assert session_of(leader).client.kazoo.connected, "kazoo knows of nothing: a client that sends does not ping"
        assert 1 in observer.view().brokers, "the server has not given its place away yet"
        busy.cancel()


async def _keep_asking(coordinator: ZooKeeperCoordinator) -> None:
    """The traffic that keeps kazoo from pinging."""
    unanswered = set()
    while True:
        unanswered.add(asyncio.create_task(_ask(coordinator)))
        await asyncio.sleep(0.02)


async def _ask(coordinator: ZooKeeperCoordinator) -> None:
    with contextlib.suppress(CoordinationError):
        await session_of(coordinator).get("test", "/")


@asynchronous
async def test_1_an_idle_broker_keeps_its_lease(server: Server) -> None:
    """Defence: the heartbeat, for kazoo does not tell of its own pings."""
    async with group(server.address) as brokers:
        leader = await brokers.start(1)
        at_first = leader.lease_ends
        await eventually(lambda: leader.lease_ends > at_first + session_of(leader).lease.lasts_s / 2)


# --- 2: a correct lease is not enough --------------------------------------------------------------------------------


@asynchronous
async def test_2_a_process_that_was_stopped_leads_no_more_though_kazoo_has_not_noticed(server: Server) -> None:
    """Defence: the lease is compared with the clock at each use, and not ended by an event."""
    clock = Clock()
    async with group(server.address) as brokers:
        leader = await brokers.start(1, clock=clock)
        await leader.create_topic("orders", 1, 1)
        assert leader.known_leader(AT) is not None
        clock.jump(12)
        assert session_of(leader).client.kazoo.connected
        with pytest.raises(Unavailable):
            leader.known_leader(AT)
        with pytest.raises(Unavailable):
            await leader.change_in_sync(AT, {1}, 0)


@asynchronous
async def test_2_a_leader_that_was_replaced_changes_nothing_at_its_old_epoch(server: Server) -> None:
    """Defence: the epoch is compared, and the state written at the version that was read."""
    async with group(server.address) as brokers:
        first, second = await brokers.start(1), await brokers.start(2)
        creation = await first.create_topic("orders", 1, 2)
        before = creation.topic.partitions[0]
        old, heir = (first, second) if before.leader == 1 else (second, first)
        await old.change_in_sync(AT, {1, 2}, before.epoch)
        await asyncio.to_thread(end_session, server.address, session_of(old).client.kazoo.client_id)
        for broker in (heir, old):
            await until(broker, lambda view: "orders" in view.topics and view.partition(AT).leader == heir.me.id)
        await eventually(lambda: leading(old))
        with pytest.raises(StaleEpoch):
            await old.change_in_sync(AT, {1, 2}, before.epoch)
        assert (await led(heir, AT)).in_sync == (heir.me.id,)


@asynchronous
async def test_2_a_state_that_changed_after_it_was_read_is_not_written_over(server: Server) -> None:
    """Defence: the version check of the write; the decision is made again on what is there by then."""
    async with group(server.address) as brokers:
        leader = await brokers.start(1)
        creation = await leader.create_topic("orders", 1, 1)
        meddler = await brokers.session()
        path = brokers.tree.state(AT)
        newer = replace(creation.topic.partitions[0], epoch=5)
        read = session_of(leader).get

        async def read_and_lose_the_race(kind: str, where: str, **more: bool) -> object:
            node = await read(kind, where, **more)
            if kind == "change_in_sync":
                await meddler.commit("test", Write(path, znodes.encode_state(newer)))
                session_of(leader).get = read  # type: ignore[method-assign]
            return node

        session_of(leader).get = read_and_lose_the_race  # type: ignore[method-assign, assignment]
        with pytest.raises(StaleEpoch):
            await leader.change_in_sync(AT, {1}, 0)
        node = await meddler.get("test", path)
        assert node is not None
        assert znodes.decode_state(path, node.data) == newer


@asynchronous
async def test_2_a_controller_that_was_replaced_passes_nothing_on(server: Server) -> None:
    """Defence: each of its transactions checks /controller_epoch."""
    async with group(server.address) as brokers:
        controller = await brokers.start(1)
        await until(controller, lambda view: view.controller == 1)
        leader, meddler = await brokers.start(2), await brokers.session()
        creation = await leader.create_topic("orders", 2, 1)
        at = TopicPartition("orders", next(n for n, found in enumerate(creation.topic.partitions) if found.leader == 2))
        await knows(controller, "orders")
        outcome = _of_the_first_change_after_an_election(session_of(controller), meddler, brokers.tree, at)
        abandon(leader)
        assert await asyncio.wait_for(outcome, WITHIN_S) == (
            str(Changed(brokers.tree.controller_epoch)),
            creation.topic.partitions[at.partition],
        )


def _of_the_first_change_after_an_election(
    session: Session, meddler: Session, tree: Tree, at: TopicPartition
) -> asyncio.Future[tuple[str, Partition]]:
    """Another is elected when the controller is about to write: why it could not, and the state as it then is."""
    outcome: asyncio.Future[tuple[str, Partition]] = asyncio.get_running_loop().create_future()
    commit = session.commit

    async def elect_and_commit(kind: str, *operations: Operation) -> None:
        if kind != "control":
            await commit(kind, *operations)
            return
        session.commit = commit  # type: ignore[method-assign]
        await meddler.commit("test", Write(tree.controller_epoch, b"7"))
        refusal = ""
        try:
            await commit(kind, *operations)
        except Conflict as conflict:
            refusal = str(conflict)
            raise
        finally:
            node = await meddler.get("test", tree.state(at))
            assert node is not None
            outcome.set_result((refusal, znodes.decode_state("", node.data)))

    session.commit = elect_and_commit  # type: ignore[method-assign]
    return outcome


# --- 3: kazoo's reconnect backoff expires healthy brokers ------------------------------------------------------------


@asynchronous
async def test_3_the_pause_between_two_attempts_to_reconnect_neither_grows_nor_dwindles(
    server: Server, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defence: `connection_retry` with a backoff of 1 and no jitter. kazoo's own doubles up to a minute; with a jitter,
    which multiplies the pause before, it walks at random, and down to nothing in the long run."""
    pauses: list[float] = [0.0]
    enough = Event()
    attempts_max = 60

    def sleep(seconds: float) -> None:
        pauses[-1] += seconds

    connect = Handler.create_connection

    def counted(self: Handler, *arguments: object, **named: object) -> object:
        pauses.append(0.0)
        if len(pauses) > attempts_max:
            enough.set()
            Event().wait(0.001)
        return connect(self, *arguments, **named)

    monkeypatch.setattr(Handler, "sleep_func", staticmethod(sleep))
    monkeypatch.setattr(Handler, "create_connection", counted)
    async with group(server.address) as brokers:
        await brokers.start(1, connect=proxy.address)
        proxy.cut()
        assert await asyncio.to_thread(enough.wait, WITHIN_S)
        proxy.heal()
    _, *whole = pauses[:attempts_max]  # before the first attempt there is none
    assert whole == [pytest.approx(client.RECONNECT_DELAY_S)] * (attempts_max - 1)


@asynchronous
async def test_3_a_server_that_takes_a_connection_and_says_nothing_is_not_waited_for(
    server: Server, proxy: Proxy
) -> None:
    """Defence: an attempt has a time of its own. kazoo gives a server a whole session timeout for its first word."""
    async with group(server.address) as brokers:
        coordinator = brokers.made(1, connect=proxy.address, session_timeout_ms=60_000, attempt_s=0.1)
        proxy.silence()
        starting = asyncio.create_task(coordinator.start())
        await eventually(lambda: proxy.connections >= 3)
        proxy.heal()
        await starting
        assert coordinator.view().brokers.keys() == {1}


# --- 5: a restarting broker finds its own ghost ----------------------------------------------------------------------


@asynchronous
async def test_5_a_broker_that_restarts_replaces_its_own_ghost_and_outlives_it(server: Server) -> None:
    """Defence: the owner of the znode that is there is compared with the sessions that were this broker's. Were
    NodeExists taken for success, the registration would go with the old session."""
    async with group(server.address) as brokers:
        before = await brokers.start(1)
        ghost = session_of(before).client.kazoo.client_id
        abandon(before)
        after = await brokers.start(1)
        await asyncio.to_thread(end_session, server.address, ghost)
        looker = await brokers.session()
        node = await looker.get("test", brokers.tree.broker(1))
        assert node is not None
        assert node.owner == session_of(after).id != ghost[0]


@asynchronous
async def test_5_a_broker_waits_for_the_ghost_of_another_that_had_its_id(server: Server) -> None:
    """Defence: what exists with another's session is neither success nor refusal before its time is over."""
    async with group(server.address) as brokers:
        before = await brokers.start(1)
        abandon(before)
        replacement = replace(addressed(1), kafka_port=19_001, rpc_port=19_002)
        after = await brokers.start(replacement)
        assert after.view().brokers == {1: replacement}


@asynchronous
async def test_5_a_broker_whose_id_has_passed_to_another_while_it_was_cut_off_is_lost(
    server: Server, proxy: Proxy
) -> None:
    """Defence: it does not try for ever to register, and refuse everything meanwhile."""
    async with group(server.address) as brokers:
        cut_off = await brokers.start(1, connect=proxy.address)
        proxy.cut()
        await asyncio.to_thread(end_session, server.address, session_of(cut_off).client.kazoo.client_id)
        replacement = replace(addressed(1), kafka_port=19_001, rpc_port=19_002)
        await brokers.start(replacement)
        proxy.heal()
        assert isinstance(await asyncio.wait_for(cut_off.lost(), WITHIN_S), BrokerIdTaken)


@pytest.mark.parametrize("defence", ["view", "heartbeat"])
@asynchronous
async def test_5_a_broker_whose_registration_is_taken_away_leads_nothing_until_it_is_back(
    server: Server, defence: str
) -> None:
    """Defences: a view without oneself ends the lease; a heartbeat reads the registration, for watches can be lost.
    Each alone suffices."""
    async with group(server.address) as brokers:
        leader = await brokers.start(1)
        await leader.create_topic("orders", 1, 1)
        if defence == "heartbeat":
            session_of(leader).on_watch = lambda path: None
        else:
            _always_registered(session_of(leader))
        returns = _held_back(session_of(leader))
        meddler = await brokers.session()
        await meddler.commit("test", Delete(brokers.tree.broker(1)))
        await refused(leader)
        returns.set()
        await eventually(lambda: leading(leader))
        assert await meddler.get("test", brokers.tree.broker(1)) is not None


def _always_registered(session: Session) -> None:
    """As far as its heartbeats tell."""
    get = session.get

    async def answered(kind: str, path: str, *, watch: bool = False, probe: bool = False) -> Node | None:
        if kind == "heartbeat":
            return Node(b"", 0, session.id, 0, 0)
        return await get(kind, path, watch=watch, probe=probe)

    session.get = answered  # type: ignore[method-assign]


def _held_back(session: Session) -> asyncio.Event:
    """Registers again only when told to, which else takes it a few milliseconds."""
    told, commit = asyncio.Event(), session.commit

    async def when_told(kind: str, *operations: Operation) -> None:
        if kind == "register":
            await told.wait()
        await commit(kind, *operations)

    session.commit = when_told  # type: ignore[method-assign]
    return told


# --- 6: watches are lost ---------------------------------------------------------------------------------------------


@asynchronous
async def test_6_what_happened_while_the_connection_was_broken_is_seen_after_it(server: Server, proxy: Proxy) -> None:
    """Defence: everything is read again after each reconnect."""
    async with group(server.address) as brokers:
        broken, whole = await brokers.start(1, connect=proxy.address), await brokers.start(2)
        proxy.cut()
        await whole.create_topic("orders", 1, 1)
        proxy.heal()
        await knows(broken, "orders")


@asynchronous
async def test_6_a_watch_that_never_fired_is_made_good_at_the_slow_interval(server: Server) -> None:
    """Defence: everything is read again at an interval."""
    async with group(server.address) as brokers:
        deaf, other = await brokers.start(1, reread_s=0.1), await brokers.start(2)
        await until(deaf, lambda view: 2 in view.brokers)
        session_of(deaf).on_watch = lambda path: None
        await other.create_topic("orders", 1, 1)
        await knows(deaf, "orders")


# --- 7: a listener that blocks hangs the client ----------------------------------------------------------------------


@asynchronous
async def test_6_a_topic_of_which_a_watch_has_told_is_asked_for_until_it_has_been_read(server: Server) -> None:
    """Defence: `Mirror.changing`. Else a leader takes messages into the former topic until all is read again."""
    async with group(server.address) as brokers:
        both = {1: await brokers.start(1), 2: await brokers.start(2)}
        creation = await both[1].create_topic("orders", 1, 1)
        leader = both[creation.topic.partitions[0].leader]
        other = both[3 - leader.me.id]
        await knows(leader, "orders")
        await knows(other, "orders")
        _reads_for_ever(session_of(leader), brokers.tree.topics)
        await other.delete_topic("orders")
        again = await other.create_topic("orders", 1, 1)
        await eventually(lambda: leader.known_leader(AT) is None)
        assert leader.view().topics["orders"].life == creation.topic.life, "it has read nothing yet"
        assert await leader.find_leader(AT) == again.topic.partitions[0]
        assert leader.view().topics["orders"].life == again.topic.life


def _reads_for_ever(session: Session, folder: str) -> None:
    """When it lists the folder next, it waits for as long as the test lasts; others that list it do not."""
    listing = session.listing

    async def endless(kind: str, path: str) -> Listing | None:
        if path == folder:
            session.listing = listing  # type: ignore[method-assign]
            await asyncio.Event().wait()
        return await listing(kind, path)

    session.listing = endless  # type: ignore[method-assign]


@asynchronous
async def test_7_kazoo_reconnects_while_the_event_loop_is_busy(server: Server, proxy: Proxy) -> None:
    """Defence: kazoo's thread puts into an inbox and goes on. Were it to wait for the loop, it would hang here."""
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address)
        made = proxy.connections
        proxy.cut()
        proxy.heal()
        _block_until_reconnected(coordinator, proxy, made)
        await coordinator.create_topic("orders", 1, 1)


def _block_until_reconnected(coordinator: ZooKeeperCoordinator, proxy: Proxy, made: int) -> None:
    """Without a turn of the event loop."""
    pause = Event()
    for _ in range(2_000):
        if proxy.connections > made and session_of(coordinator).client.kazoo.connected:
            return
        pause.wait(0.005)
    raise AssertionError("kazoo has not reconnected: its thread hangs")


# --- the rest of the matrix ------------------------------------------------------------------------------------------


@asynchronous
async def test_a_session_that_is_ended_by_force_is_followed_by_a_new_one_with_everything(server: Server) -> None:
    """Registered once, watches set again, and nothing led in between."""
    async with group(server.address) as brokers:
        victim, other = await brokers.start(1), await brokers.start(2)
        await until(victim, lambda view: 2 in view.brokers)
        old = session_of(victim).id
        await asyncio.to_thread(end_session, server.address, session_of(victim).client.kazoo.client_id)
        await until(other, lambda view: 1 not in view.brokers)
        await until(other, lambda view: 1 in view.brokers)
        assert session_of(victim).id != old
        await other.create_topic("orders", 2, 2)
        await knows(victim, "orders")


@asynchronous
async def test_offsets_that_wait_to_be_written_are_not_those_of_a_topic_made_again(server: Server) -> None:
    async with group(server.address) as brokers:
        home = await brokers.start(1, offsets="zookeeper_interval", offsets_interval_ms=60_000)
        other = await brokers.start(2)
        await other.create_topic("orders", 1, 1)
        await until(home, lambda view: "orders" in view.topics)
        (owned,) = [name for name in ("a", "b", "c", "d") if home.group_coordinator(name) == 1][:1]
        for offset in (7, 8):  # the first is written at once
            await home.commit_offsets(owned, {AT: Committed(offset)})
        await other.delete_topic("orders")
        made = (await other.create_topic("orders", 1, 1)).topic
        await until(home, lambda view: view.topics.get("orders") == made)
        assert await home.committed_offsets(owned) == {}


@asynchronous
async def test_a_silence_shorter_than_the_lease_costs_nothing_but_the_wait(server: Server, proxy: Proxy) -> None:
    async with group(server.address) as brokers:
        coordinator = await brokers.start(1, connect=proxy.address, metadata="lookup", session_timeout_ms=20_000)
        await coordinator.create_topic("orders", 1, 1)
        session_id = session_of(coordinator).id
        proxy.silence()
        asking = asyncio.create_task(_led(coordinator))
        await asyncio.sleep(0)
        proxy.heal()
        with contextlib.suppress(Unavailable):
            await asking
        await eventually(lambda: session_of(coordinator).connected)
        assert (await led(coordinator, AT)).leader == 1
        assert session_of(coordinator).id == session_id


async def _led(coordinator: ZooKeeperCoordinator) -> object:
    return await led(coordinator, AT)

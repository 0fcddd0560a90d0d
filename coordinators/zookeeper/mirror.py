"""What this broker has read of the tree, kept fresh by watches.

A watch that fires marks its znode; so does everything at once after each reconnect (watches are lost with their
connection) and at a slow interval (one that was lost otherwise is made good). `refresh` reads what is marked, and sets
the next watch in the same request, so that no change can fall between.

A znode that cannot be understood changes nothing (`topic_mirror.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.errors import CoordinationError
from coordinators.model import NO_LEADER, Broker, TopicPartition
from coordinators.zookeeper import znodes
from coordinators.zookeeper.requests import together
from coordinators.zookeeper.topic_mirror import KIND, Faults, TopicMirror
from coordinators.zookeeper.znodes import Place, Tree, Where

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinators.zookeeper.session import Session

_EVERYTHING: Final = frozenset({Where(Place.BROKERS), Where(Place.TOPICS), Where(Place.CONTROLLER)})


class Mirror:
    def __init__(self, session: Session, tree: Tree) -> None:
        self._session = session
        self._tree = tree
        self._marked: set[Where] = set()
        self.changing: set[str] = set()  # topics of which a watch has told, and that are not shown yet as they are now
        self._being_read: set[Where] = set()
        self.brokers: dict[int, Broker] = {}
        self.entered_by: dict[int, int] = {}  # broker -> the transaction by which it is there
        self.controller = NO_LEADER
        self.controller_owner = 0  # the session whose controller it is
        self.faults = Faults()
        self.topics = TopicMirror(session, tree, self.faults, lambda: self._marked.add(Where(Place.TOPICS)))

    # --- what must be read --------------------------------------------------------------------------------

    @property
    def stale(self) -> bool:
        return bool(self._marked)

    def mark(self, path: str) -> None:
        """A watch fired."""
        where = self._tree.where(path)
        if where is not None:
            self._marked.add(where)
            if where.place in {Place.TOPIC, Place.STATE}:
                self.changing.add(where.at.topic)

    def shown(self) -> None:
        """What was read by now is in the broker's view."""
        if self.changing:
            self.changing &= {where.at.topic for where in self._marked | self._being_read}

    def mark_all(self) -> None:
        self._marked |= _EVERYTHING
        self._marked.update(Where(Place.TOPIC, TopicPartition(name, -1)) for name in self.topics.names)

    async def refresh(self) -> None:
        """Read what is marked. Raises `Unavailable`; it stays marked then."""
        marked, self._marked = self._marked, set()
        self._being_read = marked
        try:
            await self._read(marked)
        except CoordinationError:
            self._marked |= marked
            raise
        finally:
            self._being_read = set()

    async def _read(self, marked: Collection[Where]) -> None:
        places = {where.place for where in marked}
        if Place.BROKERS in places:
            await self._read_brokers()
        if Place.CONTROLLER in places:
            await self._read_controller()
        topics = {where.at.topic for where in marked if where.place is Place.TOPIC}
        if Place.TOPICS in places:
            topics |= await self.topics.read_names()
        await together(self.topics.read_topic(name) for name in sorted(topics))
        states = [where.at for where in marked if where.place is Place.STATE and where.at.topic not in topics]
        await together(self.topics.read_state(at) for at in states)

    # --- brokers and controller ---------------------------------------------------------------------------

    async def _read_brokers(self) -> None:
        listing = self.faults.listed(self._tree.brokers, await self._session.listing(KIND, self._tree.brokers))
        if listing is None:
            return
        found = await together(map(self._read_broker, listing.names))
        self.brokers = {broker.id: broker for broker in found if broker is not None}

    async def _read_broker(self, name: str) -> Broker | None:
        """A live broker; None where it has just gone, or nobody could reach it by what it says."""
        path = f"{self._tree.brokers}/{name}"
        node = await self._session.get(KIND, path)
        if node is None:
            return None
        broker = self.faults.understood(path, znodes.decode_broker, node.data, name)
        if broker is not None:
            self.entered_by[broker.id] = node.made_by
        return broker

    async def _read_controller(self) -> None:
        path = self._tree.controller
        node = await self._session.get(KIND, path, watch=True)
        self.controller, self.controller_owner = NO_LEADER, 0
        if node is not None:
            self.controller_owner = node.owner
            found = self.faults.understood(path, znodes.decode_controller, node.data)
            self.controller = NO_LEADER if found is None else found

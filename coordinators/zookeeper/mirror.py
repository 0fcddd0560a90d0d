"""What this broker has read of the tree, kept fresh by watches.

A watch that fires marks its znode; so does everything at once after each reconnect (watches are lost with their
connection) and at a slow interval (one that was lost otherwise is made good). `refresh` reads what is marked, and sets
the next watch in the same request, so that no change can fall between.

A znode that cannot be understood changes nothing: what was read of it before stays, and `faults` says what is wrong
and where. So a damaged or vanished znode never makes a broker forget a topic, and with it the topic's messages. A whole
topic that is gone was deleted only if the folder of all topics says so: its version counts the deletions. Where fewer
were deleted than are gone, somebody has meddled, or the tree was lost or replaced, and none of them is forgotten. The
same holds for a topic that was made anew under its name: which transaction made it is its life.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from coordinators.errors import CoordinationError, Unreadable
from coordinators.model import NO_LEADER, Broker, Partition, Topic, TopicPartition, topic_name_fault
from coordinators.zookeeper import znodes
from coordinators.zookeeper.pipeline import together
from coordinators.zookeeper.znodes import Place, Tree, Where

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from coordinators.zookeeper.requests import Listing, Node
    from coordinators.zookeeper.session import Session

KIND: Final = "refresh"
_EVERYTHING: Final = frozenset({Where(Place.BROKERS), Where(Place.TOPICS), Where(Place.CONTROLLER)})
_T = TypeVar("_T")


class Mirror:
    def __init__(self, session: Session, tree: Tree) -> None:
        self._session = session
        self._tree = tree
        self._marked: set[Where] = set()
        self.changing: set[str] = set()  # topics of which a watch has told, and that are not shown yet as they are now
        self._being_read: set[Where] = set()
        self.brokers: dict[int, Broker] = {}
        self.entered_by: dict[int, int] = {}  # broker -> the transaction by which it is there
        self.topics: dict[str, Topic] = {}
        self.versions: dict[TopicPartition, int] = {}  # of the states' znodes
        self.made_by: dict[TopicPartition, int] = {}  # the transactions that made these
        self.controller = NO_LEADER
        self.controller_owner = 0  # the session whose controller it is
        self.faults: dict[str, Unreadable] = {}
        self._names: set[str] = set()  # of topics, whether they are understood or not
        self._folder = (0, 0)  # of all topics: which transaction made it, and how many deletions it has counted
        self._deletions_unseen = 0  # of topics that were there again, or not known, when the deletion was counted

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
        self._marked.update(Where(Place.TOPIC, TopicPartition(name, -1)) for name in self._names)

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
            topics |= await self._read_topic_names()
        await together(self.read_topic(name) for name in sorted(topics))
        states = [where.at for where in marked if where.place is Place.STATE and where.at.topic not in topics]
        await together(self._read_state(at) for at in states)

    # --- brokers and controller ---------------------------------------------------------------------------

    async def _read_brokers(self) -> None:
        listing = await self._present(self._tree.brokers)
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
        broker = self._understood(path, znodes.decode_broker, node.data, name)
        if broker is not None:
            self.entered_by[broker.id] = node.made_by
        return broker

    async def _read_controller(self) -> None:
        path = self._tree.controller
        node = await self._session.get(KIND, path, watch=True)
        self.controller, self.controller_owner = NO_LEADER, 0
        if node is not None:
            self.controller_owner = node.owner
            found = self._understood(path, znodes.decode_controller, node.data)
            self.controller = NO_LEADER if found is None else found

    # --- topics -------------------------------------------------------------------------------------------

    async def _read_topic_names(self) -> set[str]:
        """Forget the topics that were deleted; say which ones are new."""
        path = self._tree.topics
        before = set(self._names)  # what is made while the answer is under way is not in it, and not gone
        listing = await self._present(path)
        if listing is None:
            return set()
        found = {name for name in listing.names if self._may_be_topic(f"{path}/{name}", name)}
        gone = before - found
        made_by, deletions = self._folder
        deleted = listing.made_by == made_by and listing.version - deletions >= len(gone)
        self._deletions_unseen = (self._deletions_unseen + listing.version - deletions - len(gone)) if deleted else 0
        for name in gone:
            if deleted:
                self.forget(name)
            else:
                self._miss(name)
        self._folder = (listing.made_by, listing.version)
        return found - self._names

    def _miss(self, name: str) -> None:
        """A topic has vanished, and may be replaced. What is known of it stays, because its messages do; nobody is
        served of it."""
        self._names.discard(name)
        for at in self._ats(name):
            path = self._tree.state(at)
            self.faults[path] = Unreadable(f"{path} has vanished, and no broker has deleted topic {name!r}")

    def _may_be_topic(self, path: str, name: str) -> bool:
        """Says nothing of what stands in it: its faults stay."""
        fault = topic_name_fault(name)
        if fault is not None:
            self.faults[path] = Unreadable(f"{path}: {fault}")
        return fault is None

    async def read_made(self, name: str) -> None:
        """Read a topic that this broker has just made: who reads the names meanwhile need not read it too."""
        self._names.add(name)
        await self.read_topic(name)

    async def read_topic(self, name: str) -> None:
        """Read one topic with all of its partitions."""
        path = self._tree.topic(name)
        node = await self._session.get(KIND, path, watch=True)
        if node is None:
            self._marked.add(Where(Place.TOPICS))
            return
        self._names.add(name)
        stored = self._understood(path, znodes.decode_topic, node.data)
        if stored is None:
            return
        ats = [TopicPartition(name, number) for number in range(len(stored.replicas))]
        nodes = await together(self._session.get(KIND, self._tree.state(at), watch=True) for at in ats)
        life = znodes.life(node.made_by)
        if self._lived_before(name, life) and not self._deletions_unseen:
            await self._read_topic_names()
        if name not in self._names:
            return  # deleted while the answers were under way
        if self._lived_before(name, life) and not self._forget_former_life(name):
            self._miss(name)
            return
        known = self.topics.get(name)
        same_size = known is not None and len(known.partitions) == len(ats)
        partitions = [
            self._decoded(at, state, replicas) or (known.partitions[at.partition] if known and same_size else None)
            for at, state, replicas in zip(ats, nodes, stored.replicas, strict=True)
        ]
        found = tuple(partition for partition in partitions if partition is not None)
        if len(found) == len(
            ats
        ):  # of which a part cannot be understood, and never could, is not there for anybody yet
            self.topics[name] = Topic(name, found, stored.settings, life)

    def _lived_before(self, name: str, life: str) -> bool:
        known = self.topics.get(name)
        return known is not None and known.life != life

    def _forget_former_life(self, name: str) -> bool:
        """Whether the topic that had the name before was deleted, as far as can be known."""
        if not self._deletions_unseen:
            return False
        self._deletions_unseen -= 1
        self.forget(name)
        self._names.add(name)
        return True

    async def _read_state(self, at: TopicPartition) -> None:
        node = await self._session.get(KIND, self._tree.state(at), watch=True)
        topic = self.topics.get(at.topic)
        if topic is None or not 0 <= at.partition < len(topic.partitions):
            return  # the topic's own watch is on its way
        partition = self._decoded(at, node, topic.partitions[at.partition].replicas)
        if partition is not None and node is not None:
            self.put_state(at, partition, node.version)

    def _decoded(self, at: TopicPartition, node: Node | None, replicas: tuple[int, ...]) -> Partition | None:
        path = self._tree.state(at)
        if node is None:
            self.faults[path] = Unreadable(f"{path} is missing")
            self._marked.add(Where(Place.TOPICS))  # most likely the topic is being deleted
            return None
        partition = self._understood(path, znodes.decode_state, node.data)
        if partition is not None and partition.replicas != replicas:
            self.faults[path] = Unreadable(f"{path}: replicas are {partition.replicas}, and {replicas} in the topic")
            return None
        if partition is not None:
            self.versions[at] = node.version
            self.made_by[at] = node.made_by
        return partition

    # --- what this broker did itself ----------------------------------------------------------------------

    def put_state(self, at: TopicPartition, partition: Partition, version: int) -> None:
        """A partition as it is now. Should an older answer be under way, its watch fires and it is read again."""
        topic = self.topics[at.topic]
        partitions = list(topic.partitions)
        partitions[at.partition] = partition
        self.topics[at.topic] = replace(topic, partitions=tuple(partitions))
        self.versions[at] = version

    def forget(self, name: str) -> None:
        """A topic is gone."""
        self._names.discard(name)
        for at in self._ats(name):
            self.versions.pop(at, None)
            self.made_by.pop(at, None)
        self.topics.pop(name, None)
        below = f"{self._tree.topic(name)}/"
        for path in [path for path in self.faults if path.startswith(below) or path == below[:-1]]:
            del self.faults[path]

    def _ats(self, name: str) -> list[TopicPartition]:
        topic = self.topics.get(name)
        return [TopicPartition(name, number) for number in range(len(topic.partitions) if topic else 0)]

    def partitions(self) -> Iterable[tuple[TopicPartition, Partition]]:
        """Those that are understood."""
        for topic in self.topics.values():
            for number, partition in enumerate(topic.partitions):
                at = TopicPartition(topic.name, number)
                if self._tree.state(at) not in self.faults:
                    yield at, partition

    # --- faults -------------------------------------------------------------------------------------------

    def _understood(self, path: str, decode: Callable[..., _T], *arguments: object) -> _T | None:
        try:
            found = decode(path, *arguments)
        except Unreadable as fault:
            self.faults[path] = fault
            return None
        self.faults.pop(path, None)
        return found

    async def _present(self, folder: str) -> Listing | None:
        """A folder's children, with what was wrong with those that are gone forgotten."""
        listing = await self._session.listing(KIND, folder)
        if listing is None:
            self.faults[folder] = Unreadable(f"{folder} is missing")
            return None
        there = {folder + "/" + name for name in listing.names}
        gone = [path for path in self.faults if path.rpartition("/")[0] == folder and path not in there]
        for path in [*gone, folder]:
            self.faults.pop(path, None)
        return listing

"""The topics of the tree as this broker has read them.

A znode that cannot be understood changes nothing: what was read of it before stays, and `faults` says what is wrong
and where. So a damaged or vanished znode never makes a broker forget a topic, and with it the topic's messages. A whole
topic that is gone was deleted only if the folder of all topics says so: its version counts the deletions. Where fewer
were deleted than are gone, somebody has meddled, or the tree was lost or replaced, and none of them is forgotten. The
same holds for a topic that was made anew under its name: which transaction made it is its life.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from coordinators.errors import Unreadable
from coordinators.model import Partition, Topic, TopicPartition, topic_name_fault
from coordinators.zookeeper import znodes
from coordinators.zookeeper.requests import together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from coordinators.zookeeper.requests import Listing, Node
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

KIND: Final = "refresh"
_T = TypeVar("_T")


class Faults:
    """What is wrong in the tree, by the path of the znode: it cannot be understood, is missing, or was meddled with."""

    def __init__(self) -> None:
        self._by_path: dict[str, Unreadable] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._by_path

    def __iter__(self) -> Iterator[Unreadable]:
        return iter(self._by_path.values())

    def at(self, path: str) -> Unreadable | None:
        """On the path of every produce and fetch: almost always there is none at all."""
        return self._by_path.get(path) if self._by_path else None

    def note(self, path: str, why: str) -> None:
        self._by_path[path] = Unreadable(f"{path}{why}")

    def understood(self, path: str, decode: Callable[..., _T], *arguments: object) -> _T | None:
        """What stands in a znode, or None with a fault noted. `decode` raises `Unreadable`."""
        try:
            found = decode(path, *arguments)
        except Unreadable as fault:
            self._by_path[path] = fault
            return None
        self._by_path.pop(path, None)
        return found

    def listed(self, folder: str, listing: Listing | None) -> Listing | None:
        """A folder's, if it is there. What was wrong with those of its children that are gone is forgotten."""
        if listing is None:
            self.note(folder, " is missing")
            return None
        there = {folder + "/" + name for name in listing.names}
        gone = [path for path in self._by_path if path.rpartition("/")[0] == folder and path not in there]
        for path in [*gone, folder]:
            self._by_path.pop(path, None)
        return listing

    def forget(self, path: str) -> None:
        """Of a znode and all below it."""
        for known in [known for known in self._by_path if known == path or known.startswith(f"{path}/")]:
            del self._by_path[known]


class TopicMirror:
    """`mark_names` is told when the names of all topics must be read again."""

    def __init__(self, session: Session, tree: Tree, faults: Faults, mark_names: Callable[[], None]) -> None:
        self._session = session
        self._tree = tree
        self._faults = faults
        self._mark_names = mark_names
        self.read: dict[str, Topic] = {}
        self.versions: dict[TopicPartition, int] = {}  # of the states' znodes
        self.made_by: dict[TopicPartition, int] = {}  # the transactions that made these
        self.names: set[str] = set()  # whether they are understood or not
        self._folder = (0, 0)  # of all topics: which transaction made it, and how many deletions it has counted
        self._deletions_unseen = 0  # of topics that were there again, or not known, when the deletion was counted

    # --- reading ------------------------------------------------------------------------------------------

    async def read_names(self) -> set[str]:
        """Forget the topics that were deleted; say which ones are new."""
        path = self._tree.topics
        before = set(self.names)  # what is made while the answer is under way is not in it, and not gone
        listing = self._faults.listed(path, await self._session.listing(KIND, path))
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
        return found - self.names

    def _miss(self, name: str) -> None:
        """A topic has vanished, and may be replaced. What is known of it stays, because its messages do; nobody is
        served of it."""
        self.names.discard(name)
        for at in self._ats(name):
            self._faults.note(self._tree.state(at), f" has vanished, and no broker has deleted topic {name!r}")

    def _may_be_topic(self, path: str, name: str) -> bool:
        """Says nothing of what stands in it: its faults stay."""
        fault = topic_name_fault(name)
        if fault is not None:
            self._faults.note(path, f": {fault}")
        return fault is None

    async def read_made(self, name: str) -> None:
        """Read a topic that this broker has just made: who reads the names meanwhile need not read it too."""
        self.names.add(name)
        await self.read_topic(name)

    async def read_topic(self, name: str) -> None:
        """Read one topic with all of its partitions."""
        path = self._tree.topic(name)
        node = await self._session.get(KIND, path, watch=True)
        if node is None:
            self._mark_names()
            return
        self.names.add(name)
        stored = self._faults.understood(path, znodes.decode_topic, node.data)
        if stored is None:
            return
        ats = [TopicPartition(name, number) for number in range(len(stored.replicas))]
        nodes = await together(self._session.get(KIND, self._tree.state(at), watch=True) for at in ats)
        life = znodes.life(node.made_by)
        if self._lived_before(name, life) and not self._deletions_unseen:
            await self.read_names()
        if name not in self.names:
            return  # deleted while the answers were under way
        if self._lived_before(name, life) and not self._forget_former_life(name):
            self._miss(name)
            return
        self._faults.forget(f"{path}/partitions")  # an earlier topic of the name may have had more of them
        known = self.read.get(name)
        same_size = known is not None and len(known.partitions) == len(ats)
        partitions = [
            self._decoded(at, state, replicas) or (known.partitions[at.partition] if known and same_size else None)
            for at, state, replicas in zip(ats, nodes, stored.replicas, strict=True)
        ]
        found = tuple(partition for partition in partitions if partition is not None)
        if len(found) == len(ats):  # else a part cannot be understood, and never could: nobody is shown the topic yet
            self.read[name] = Topic(name, found, stored.settings, life)

    def _lived_before(self, name: str, life: str) -> bool:
        known = self.read.get(name)
        return known is not None and known.life != life

    def _forget_former_life(self, name: str) -> bool:
        """Whether the topic that had the name before was deleted, as far as can be known."""
        if not self._deletions_unseen:
            return False
        self._deletions_unseen -= 1
        self.forget(name)
        self.names.add(name)
        return True

    async def read_state(self, at: TopicPartition) -> None:
        node = await self._session.get(KIND, self._tree.state(at), watch=True)
        topic = self.read.get(at.topic)
        if topic is None or not 0 <= at.partition < len(topic.partitions):
            return  # the topic's own watch is on its way
        partition = self._decoded(at, node, topic.partitions[at.partition].replicas)
        if partition is not None and node is not None:
            self.put_state(at, partition, node.version)

    def _decoded(self, at: TopicPartition, node: Node | None, replicas: tuple[int, ...]) -> Partition | None:
        path = self._tree.state(at)
        if node is None:
            self._faults.note(path, " is missing")
            self._mark_names()  # most likely the topic is being deleted
            return None
        partition = self._faults.understood(path, znodes.decode_state, node.data)
        if partition is not None and partition.replicas != replicas:
            self._faults.note(path, f": replicas are {partition.replicas}, and {replicas} in the topic")
            return None
        if partition is not None:
            self.versions[at] = node.version
            self.made_by[at] = node.made_by
        return partition

    # --- what this broker did itself ----------------------------------------------------------------------

    def put_state(self, at: TopicPartition, partition: Partition, version: int) -> None:
        """A partition as it is now. Should an older answer be under way, its watch fires and it is read again."""
        topic = self.read[at.topic]
        partitions = list(topic.partitions)
        partitions[at.partition] = partition
        self.read[at.topic] = replace(topic, partitions=tuple(partitions))
        self.versions[at] = version

    def forget(self, name: str) -> None:
        """A topic is gone."""
        self.names.discard(name)
        for at in self._ats(name):
            self.versions.pop(at, None)
            self.made_by.pop(at, None)
        self.read.pop(name, None)
        self._faults.forget(self._tree.topic(name))

    def _ats(self, name: str) -> list[TopicPartition]:
        topic = self.read.get(name)
        return [TopicPartition(name, number) for number in range(len(topic.partitions) if topic else 0)]

    def partitions(self) -> Iterable[tuple[TopicPartition, Partition]]:
        """Those that are understood."""
        for topic in self.read.values():
            for number, partition in enumerate(topic.partitions):
                at = TopicPartition(topic.name, number)
                if self._tree.state(at) not in self._faults:
                    yield at, partition

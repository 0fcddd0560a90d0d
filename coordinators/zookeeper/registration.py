"""A broker's place in the cluster: the right ZooKeeper, the tree, and an ephemeral znode that is this broker's own."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from coordinators.errors import BrokerIdTaken, Unreadable
from coordinators.model import OFFSET_MAX
from coordinators.strict_json import is_whole
from coordinators.zookeeper import znodes
from coordinators.zookeeper.requests import Conflict, Create, Delete, Exists, Write

if TYPE_CHECKING:
    from coordinators.model import Broker
    from coordinators.registry import Journal
    from coordinators.zookeeper.requests import Node
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

KIND: Final = "register"
LOOK_AGAIN_S: Final = 0.1
# An id that is taken is given one and a half session timeouts to become free: a dead broker's goes within one.
PATIENCE_TIMEOUTS: Final = 1.5
SESSIONS_REMEMBERED_MAX: Final = 16


class Registration:
    """`journal` remembers, across restarts, which cluster this broker belongs to and which sessions were its own."""

    def __init__(self, session: Session, tree: Tree, me: Broker, journal: Journal) -> None:
        self._session = session
        self._tree = tree
        self._me = me
        self._journal = journal
        self._cluster: str | None = None
        self._own: list[int] = []
        self.new = True  # whether this broker's disk knows of no cluster, or did not before it entered
        for record in journal.replay():
            self._recall(record)

    def _recall(self, record: bytes) -> None:
        try:
            found = json.loads(record)
            cluster, sessions, new = found["cluster"], found["sessions"], found.get("new", False)
            if not isinstance(cluster, str) or not isinstance(sessions, list) or not isinstance(new, bool):
                raise TypeError("a cluster is text, sessions are a list, and new is true or false")
            if not all(is_whole(session, -OFFSET_MAX - 1, OFFSET_MAX) for session in sessions):
                raise ValueError("sessions are numbers")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Unreadable(f"journal zookeeper holds {record[:100]!r}, which this program never wrote") from error
        self._cluster, self._own, self.new = cluster, sessions, new

    async def enter(self) -> None:
        """Make this broker live with the present session.

        Raises `BrokerIdTaken`, `Unreadable` (the tree is another cluster's, or has been wiped), `Unavailable`,
        `OutcomeUnknown`, `JournalFailed`: to try again is safe.
        """
        session_id = self._session.id
        await self._find_cluster()
        others = [session for session in self._own if session != session_id]
        own = [*others[1 - SESSIONS_REMEMBERED_MAX :], session_id]
        # Before the znode is there: whoever finds it later must know that it was ours.
        self._note(own, new=self.new)
        self._own = own
        await self._take_place()

    def settled(self) -> None:
        """What a new broker's disk lacks is known to the others by now."""
        if self.new:
            self._note(self._own, new=False)
            self.new = False

    def _note(self, sessions: list[int], *, new: bool) -> None:
        known = {"cluster": self._cluster, "sessions": sessions}
        self._journal.replace([json.dumps(known | ({"new": True} if new else {})).encode()])

    async def _find_cluster(self) -> None:
        """See that the tree is that of this broker's data, or make it if neither is there yet."""
        path = self._tree.cluster_id
        node = await self._session.get(KIND, path)
        if node is None and self._cluster is None:
            await self._make_tree()
            node = await self._session.get(KIND, path)
        found = None if node is None else znodes.decode_cluster_id(path, node.data)
        if found is None or self._cluster not in {None, found}:
            raise Unreadable(
                f"{path} holds {found}, and the data of broker {self._me.id} belongs to cluster {self._cluster}: "
                "this is another ZooKeeper, or its data was lost"
            )
        self._cluster = found

    async def _make_tree(self) -> None:
        znodes_to_be = [Create(path) for path in self._tree.folders]
        znodes_to_be.append(Create(self._tree.controller_epoch, znodes.encode_number(0)))
        znodes_to_be.append(Create(self._tree.cluster_id, znodes.encode_cluster_id(uuid4().hex)))
        for create in znodes_to_be:
            try:
                await self._session.commit(KIND, create)
            except Exists:
                continue  # an administrator made it, or another broker is making the tree as well

    async def _take_place(self) -> None:
        path = self._tree.broker(self._me.id)
        mine = Create(path, znodes.encode_broker(self._me), ephemeral=True)
        give_up_at = asyncio.get_running_loop().time() + PATIENCE_TIMEOUTS * self._session.lease.timeout_s
        while not await self._created(mine):
            node = await self._session.get(KIND, path)
            if node is None or await self._is_mine_now(node, mine):
                continue
            if asyncio.get_running_loop().time() >= give_up_at:
                raise BrokerIdTaken(
                    f"broker id {self._me.id} is taken: {path} belongs to session {node.owner:#x} and holds "
                    f"{node.data[:200]!r}"
                )
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _created(self, mine: Create) -> bool:
        """Whether the znode is there and goes with this session. That it exists is no success: whose is it?"""
        try:
            await self._session.commit(KIND, mine)
        except Exists:
            node = await self._session.get(KIND, mine.path)
            if node is None or node.owner != self._session.id:
                return False
            if node.data != mine.data:  # somebody has written over it
                await self._session.commit(KIND, Write(mine.path, mine.data))
        return True

    async def _is_mine_now(self, node: Node, mine: Create) -> bool:
        """Replace the ghost of an earlier session of this broker, in one step; False where it is another's."""
        if node.owner not in self._own:
            return False
        try:
            await self._session.commit(KIND, Delete(mine.path, node.version), mine)
        except Conflict:
            return False  # it went by itself, or it is another's by now
        return True

    async def present(self) -> bool:
        """Whether the znode is there and goes with the present session. Raises `Unavailable`."""
        session_id = self._session.id
        node = await self._session.get("heartbeat", self._tree.broker(self._me.id), probe=True)
        return node is not None and node.owner == session_id

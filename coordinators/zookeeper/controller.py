"""One of the brokers is the controller: it gives the partitions of the dead to the living.

Whoever creates the ephemeral /controller is, and raises /controller_epoch in the same transaction. Each change of a
leadership is one transaction as well: that /controller_epoch is still the one of its election, and that the
partition's state is still the one it decided on. So a controller that was paused, and has not noticed that there is
another by now, changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinators.errors import Unreadable
from coordinators.leadership import succession
from coordinators.zookeeper import znodes
from coordinators.zookeeper.requests import Check, Conflict, Create, Missing, Write, together

if TYPE_CHECKING:
    from coordinators.model import Partition, TopicPartition
    from coordinators.zookeeper.mirror import Mirror
    from coordinators.zookeeper.session import Session
    from coordinators.zookeeper.znodes import Tree

KIND: Final = "control"


class Controller:
    def __init__(self, session: Session, tree: Tree, me: int, mirror: Mirror) -> None:
        self._session = session
        self._tree = tree
        self._me = me
        self._mirror = mirror
        self._elected_in = 0  # the session
        self._epoch_version = -1

    async def attend(self) -> None:
        """Called when the mirror is fresh: stand for election where nobody is controller, act where this broker is.

        What it changes marks the mirror, so that it is called again. Raises `Unavailable`, `OutcomeUnknown`.
        """
        if self._mirror.controller_owner == 0:
            await self._stand()
        elif self._mirror.controller_owner == self._session.id:
            await self._pass_on()

    async def _stand(self) -> None:
        path = self._tree.controller_epoch
        node = await self._session.get(KIND, path)
        if node is None:
            raise Unreadable(f"{path} is missing")
        epoch = znodes.decode_number(path, node.data) + 1
        self._mirror.mark(self._tree.controller)
        try:
            await self._session.commit(
                KIND,
                Write(path, znodes.encode_number(epoch), node.version),
                Create(self._tree.controller, znodes.encode_controller(self._me), ephemeral=True),
            )
        except Conflict:
            return  # another was faster

    async def _pass_on(self) -> None:
        if self._elected_in != self._session.id:
            await self._learn_epoch()
        live = self._mirror.brokers
        changes = [
            (at, old, new) for at, old in self._mirror.topics.partitions() if (new := succession(old, live)) is not old
        ]
        await together(self._change(at, new) for at, _, new in changes)

    async def _learn_epoch(self) -> None:
        """The version that the election left; nobody else can have been elected while /controller is ours."""
        session_id = self._session.id
        node = await self._session.get(KIND, self._tree.controller_epoch)
        if node is None:
            raise Unreadable(f"{self._tree.controller_epoch} is missing")
        self._epoch_version = node.version
        self._elected_in = session_id

    async def _change(self, at: TopicPartition, new: Partition) -> None:
        path, version = self._tree.state(at), self._mirror.topics.versions[at]
        try:
            await self._session.commit(
                KIND,
                Check(self._tree.controller_epoch, self._epoch_version),
                Write(path, znodes.encode_state(new), version),
            )
        except Missing:
            self._mirror.mark(self._tree.topics)
        except Conflict as conflict:
            self._elected_in = 0
            self._mirror.mark(self._tree.controller if conflict.path != path else path)
        else:
            self._mirror.topics.put_state(at, new, version + 1)

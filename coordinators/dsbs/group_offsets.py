"""Commits of the groups that this broker serves: kept by its machine, and copied to the brokers next in succession."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinators.dsbs.machine.events import Commit, Forget, Gather
from coordinators.errors import OutcomeUnknown
from coordinators.idleness import Stamps, now_ms
from coordinators.keyed_lock import Turns
from coordinators.waits.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from coordinators.api import Coordinator
    from coordinators.dsbs.machine.offsets import Offsets
    from coordinators.dsbs.shell import Shell
    from coordinators.model import Committed, TopicPartition


class GroupOffsets:
    def __init__(self, shell: Shell, coordinator: Coordinator) -> None:
        self._shell = shell
        self._coordinator = coordinator
        self._turns = Turns()  # at committing, of a group
        self._turn = Turn(self._write)

    @property
    def _held(self) -> Offsets:
        return self._shell.running.offsets

    def begin_commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> Awaitable[None] | None:
        for at in offsets:
            self._coordinator.view().partition(at)
        held = self._held
        if group in held.gathered and group not in self._turns and not held.begins(group, offsets):
            return self._turn.add({(group, at): place for at, place in offsets.items()})
        return self._commit_in_turn(group, offsets)

    def _write(self, places: Mapping[tuple[str, TopicPartition], Committed]) -> None:
        """The commits of a turn, each group's as one."""
        groups: dict[str, dict[TopicPartition, Committed]] = {}
        for (group, at), place in places.items():
            groups.setdefault(group, {})[at] = place
        at_ms = now_ms()
        self._shell.do_together([Commit(group, offsets, 0, at_ms) for group, offsets in groups.items()])

    async def _commit_in_turn(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        async with self._turns.at(group):
            await self._gather(group)
            if not self._held.begins(group, offsets):
                self._shell.do(Commit(group, offsets, 0, now_ms()))
                return
            copied = await self._shell.finished(lambda token: Commit(group, offsets, token, now_ms()))
            if copied.missing and copied.known_to == {self._coordinator.me.id}:
                raise OutcomeUnknown(f"group {group!r} begins here, and no other broker says that it keeps a copy")

    async def _gather(self, group: str) -> None:
        if group not in self._held.gathered:
            await self._shell.finished(lambda token: Gather(token, group))

    async def committed(self, group: str) -> Mapping[TopicPartition, Committed]:
        await self._gather(group)
        return self._held.committed(group)

    async def stamps(self) -> Stamps:
        """Of all groups whose offsets or copies are here: each broker forgets what it holds."""
        return Stamps(now_ms(), self._held.stamps())

    async def stamp(self, group: str) -> None:
        if self._coordinator.group_coordinator(group) == self._coordinator.me.id:
            for at, place in list((await self.committed(group)).items())[:1]:
                self._shell.do(Commit(group, {at: place}, 0, now_ms()))

    async def forget(self, stamps: Mapping[str, int]) -> None:
        held = self._held
        newest = held.stamps()
        groups = frozenset(group for group, at_ms in stamps.items() if newest.get(group) == at_ms)
        self._shell.disk.rewrite_offsets(row for row in held.rows() if row.group not in groups)
        self._shell.do(Forget(groups))

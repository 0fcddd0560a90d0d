"""The groups that this broker serves: the machines, their clock, and the futures of those who wait."""

from __future__ import annotations

import asyncio
from time import monotonic_ns
from typing import TYPE_CHECKING, Final

from brokers.groups.machine import Group
from brokers.groups.members import Join, Joined, Reply, Synced
from brokers.wire.errors import ErrorCode
from coordinators.model import GROUP_NAME_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from brokers.groups.members import GroupLimits

GROUPS_MAX: Final = 10_000


def now_ms() -> int:
    return monotonic_ns() // 1_000_000


class Groups:
    """Used from one event loop. Groups without members are forgotten; their offsets are the coordinator's."""

    def __init__(self, limits: GroupLimits) -> None:
        self._limits = limits
        self._groups: dict[str, Group] = {}
        self._clocks: dict[str, tuple[int, asyncio.Handle]] = {}

    def join(self, group_id: str, request: Join) -> asyncio.Future[Joined]:
        future: asyncio.Future[Joined] = asyncio.get_running_loop().create_future()
        if not 1 <= len(group_id) <= GROUP_NAME_MAX:
            future.set_result(Joined(ErrorCode.INVALID_GROUP_ID))
        elif group_id not in self._groups and len(self._groups) >= GROUPS_MAX:
            future.set_result(Joined(ErrorCode.GROUP_MAX_SIZE_REACHED))
        else:
            group = self._groups.setdefault(group_id, Group(self._limits))
            self._settle(group_id, group, group.join(future, request, now_ms()))
        return future

    def sync(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, assignments: Mapping[str, bytes]
    ) -> asyncio.Future[Synced]:
        future: asyncio.Future[Synced] = asyncio.get_running_loop().create_future()
        group = self._groups.get(group_id)
        if group is None:
            future.set_result(Synced(ErrorCode.UNKNOWN_MEMBER_ID))
        else:
            replies = group.sync(future, member_id, instance_id, generation, assignments, now_ms())
            self._settle(group_id, group, replies)
        return future

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return group.heartbeat(member_id, instance_id, generation, now_ms())

    def leave(self, group_id: str, leaving: Sequence[tuple[str, str | None]]) -> list[ErrorCode]:
        """One error code for each of `leaving`."""
        group = self._groups.get(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving)
        errors, replies = group.leave(leaving, now_ms())
        self._settle(group_id, group, replies)
        return errors

    def commit_fault(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Whether offsets may be committed under these names. On the path of every consumed batch."""
        if not 1 <= len(group_id) <= GROUP_NAME_MAX:
            return ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(group_id)
        if group is None:
            return ErrorCode.NONE if generation < 0 else ErrorCode.UNKNOWN_MEMBER_ID
        return group.commit_fault(member_id, instance_id, generation, now_ms())

    def group(self, group_id: str) -> Group | None:
        """To look at."""
        return self._groups.get(group_id)

    def all(self) -> Mapping[str, Group]:
        """To look at."""
        return self._groups

    def close(self) -> None:
        """Stop all clocks. Whoever waits is left to its connection's end."""
        for group_id in tuple(self._clocks):
            self._stop_clock(group_id)
        self._groups.clear()

    def _settle(self, group_id: str, group: Group, replies: list[Reply]) -> None:
        """Answer those who are due, and set the clock. Early clocks are harmless: heartbeats only ever move it on."""
        for reply in replies:
            future: asyncio.Future[Joined | Synced] = reply.waiter  # type: ignore[assignment]
            if not future.done():
                future.set_result(reply.answer)
        deadline_ms = group.next_deadline_ms()
        if deadline_ms is None:
            self._stop_clock(group_id)
            if group.forgettable:
                del self._groups[group_id]
        elif group_id not in self._clocks or self._clocks[group_id][0] > deadline_ms:
            self._stop_clock(group_id)
            wait_s = max(0, deadline_ms - now_ms()) / 1000
            handle = asyncio.get_running_loop().call_later(wait_s, self._expire, group_id, group)
            self._clocks[group_id] = (deadline_ms, handle)

    def _stop_clock(self, group_id: str) -> None:
        clock = self._clocks.pop(group_id, None)
        if clock is not None:
            clock[1].cancel()

    def _expire(self, group_id: str, group: Group) -> None:
        del self._clocks[group_id]
        self._settle(group_id, group, group.expire(now_ms()))

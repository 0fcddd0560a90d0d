"""Which consumer groups nobody has used for so long that they are forgotten. `Idleness` is pure: time is an argument.

What a group commits is stamped with the time of day. That can be set, so it is believed once only: it says how old a
group is that is seen for the first time. From then on a group's age grows by a monotonic clock, until its stamp
changes. Whatever the stamps say, some of the time is watched (`_watched_ms`): members come back after a restart of
their broker before it judges. A group that has members is stamped again from time to time, so that its age is known
after a restart too.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from coordinators.offsets import OffsetStore

WATCHED_MS_MAX: Final = 3_600_000
_EPOCH_NS: Final = time_ns() - monotonic_ns()
PARTS: Final = 4  # of the retention: one is watched at least, and stamps of groups in use grow no older than one


def now_ms() -> int:
    """Milliseconds since 1970: the time of day at the start of the process, and what has passed since. Nothing is to
    be forgotten because somebody set the clock."""
    return (_EPOCH_NS + monotonic_ns()) // 1_000_000


class Stamps(NamedTuple):
    """Group -> when it was stamped last, and the time by that same clock, in ms since 1970."""

    now_ms: int
    of_groups: Mapping[str, int]


class Verdict(NamedTuple):
    """Groups to stamp again, and groups to forget."""

    in_use: tuple[str, ...]
    over: frozenset[str]


@dataclass(slots=True)
class _Seen:
    """By a monotonic clock: since when the stamp is what it is, and when the group was used last."""

    stamp_ms: int
    stamped_at_ms: int
    used_at_ms: int


class Idleness:
    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def judge(self, stamps: Stamps, members: Collection[str], retention_ms: int, now_ms: int) -> Verdict:
        """`members` are the groups that have some; `now_ms` is monotonic."""
        self._seen = {group: self._look(group, stamps, retention_ms, now_ms) for group in stamps.of_groups}
        renewed, over = [], []
        for group, seen in self._seen.items():
            if group in members:
                seen.used_at_ms = now_ms
                if now_ms - seen.stamped_at_ms >= retention_ms // PARTS:
                    renewed.append(group)
            elif now_ms - seen.used_at_ms >= retention_ms:
                over.append(group)
        return Verdict(tuple(renewed), frozenset(over))

    async def expire(
        self, store: OffsetStore, members: Collection[str], retention_ms: int, clock: Callable[[], float]
    ) -> None:
        """Judge the groups of a store when it has told their stamps, and carry the verdict out. Raises what it does."""
        stamps = await store.stamps()
        verdict = self.judge(stamps, members, retention_ms, int(clock() * 1000))
        for group in verdict.in_use:
            await store.stamp(group)
        if verdict.over:
            await store.forget({group: stamps.of_groups[group] for group in verdict.over})

    def _look(self, group: str, stamps: Stamps, retention_ms: int, now_ms: int) -> _Seen:
        stamp_ms, seen = stamps.of_groups[group], self._seen.get(group)
        if seen is not None and seen.stamp_ms == stamp_ms:
            return seen
        age_ms = 0
        if seen is None:
            age_ms = max(0, min(stamps.now_ms - stamp_ms, retention_ms - _watched_ms(retention_ms)))
        return _Seen(stamp_ms, now_ms - age_ms, now_ms - age_ms)


def _watched_ms(retention_ms: int) -> int:
    return min(WATCHED_MS_MAX, -(-retention_ms // PARTS))

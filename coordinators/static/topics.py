"""The topics of `static`: each broker keeps a list of its own, and a change is carried out on all of them or on none.

The broker with the lowest id carries out every change, one at a time for each name; the others hand theirs to it. So
two changes of one topic never cross, and no broker need be elected. A change begins with a look at every broker: where
one does not answer, or lists other brokers in its config, nothing is changed. What fails behind that is undone.

A topic's life is the first one, after all that brokers remember of the name, that has left nothing on a broker's disk;
so all brokers agree on it. A broker keeps the life of a deleted topic and takes no topic of that life again: a request
that arrives late cannot bring it back.

Where the undoing failed too, or the first broker died, some brokers have the topic and others do not. The next change
of the name detects that: a creation completes a topic that nobody has deleted, and clears away one that somebody has.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar, cast

from coordinators import errors
from coordinators.errors import (
    CoordinationError,
    InvalidRequest,
    JournalFailed,
    OutcomeUnknown,
    TopicExists,
    Unavailable,
    UnknownTopic,
)
from coordinators.keyed_lock import Turns
from coordinators.model import OFFSET_MAX, PARTITIONS_MAX, TopicSettings, topic_name_fault
from coordinators.placement import place
from coordinators.strict_json import decoded, encoded, is_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping

    from coordinators.model import Broker
    from coordinators.registry import Asking

T = TypeVar("T")

# A look is answered from memory; a change waits for the disk, and for the loop while logs are opened.
LOOK_WITHIN_S: Final = 5.0
CHANGE_WITHIN_S: Final = 10.0
# What the first broker takes at most: a look, a change and its undoing.
WHOLE_WITHIN_S: Final = LOOK_WITHIN_S + 2 * CHANGE_WITHIN_S

_ERRORS: Final = {
    kind.__name__: kind
    for kind in (*CoordinationError.__subclasses__(), JournalFailed)
    if kind.__module__ == errors.__name__
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What a broker keeps under a name: a topic, or without partitions the last one that was deleted."""

    name: str
    partitions: int
    replication_factor: int
    settings: TopicSettings
    life: int

    @property
    def live(self) -> bool:
        return self.partitions > 0

    def deleted(self) -> Entry:
        return replace(self, partitions=0, replication_factor=0)

    def is_made_like(self, other: Entry) -> bool:
        """Whether they differ in their life alone."""
        return self == replace(other, life=self.life)

    def as_data(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Entry:
        """Raises ValueError, TypeError or KeyError for what no broker wrote. Early versions wrote no life."""
        name, partitions, replicas = found["name"], found["partitions"], found["replication_factor"]
        if not isinstance(name, str) or topic_name_fault(name) is not None:
            raise ValueError(f"its name is {name!r:.100}")
        if not is_whole(partitions, 0, PARTITIONS_MAX) or not is_whole(replicas, 0, PARTITIONS_MAX):
            raise ValueError("its partitions or replicas are not numbers that a topic has")
        settings = TopicSettings(**found["settings"])
        bounds = [bound for bound in (settings.retention_bytes, settings.retention_ms) if bound is not None]
        numbers = (settings.fetch_records_max, settings.min_insync_replicas, *bounds)
        if not all(is_whole(value, 0, OFFSET_MAX) for value in numbers):
            raise ValueError("its settings are not numbers that a topic has")
        life = int(found.get("life", 1))
        if life < 0 or (partitions and not replicas):
            raise ValueError("it has a life before the first, or partitions without replicas")
        return cls(name, partitions, replicas, settings, life)


class Shelf(Protocol):
    """The list of one broker, which is this one's."""

    def entry(self, name: str) -> Entry | None: ...

    def keep(self, entry: Entry) -> None:
        """Put an entry in the place of the name's last one. Raises `JournalFailed`."""

    def lives(self, name: str) -> Collection[str]:
        """The lives of the name that have left something on this broker's disk."""


class Seen(NamedTuple):
    """What one broker has of a name."""

    entry: Entry | None
    lives: frozenset[int]


class StaticTopics:
    """Changes of the topics of all brokers, begun here or asked for by others."""

    def __init__(
        self,
        me: Broker,
        brokers: Mapping[int, Broker],
        shelf: Shelf,
        asking: Asking | None,
        sent: Callable[[str, int, int], None],
    ) -> None:
        """`sent` counts what goes out: the verb, bytes and requests. Without `asking` this broker is alone."""
        self._me = me
        self._brokers = brokers if asking is not None else {me.id: me}
        self._placed_on = sorted(brokers)
        self._shelf = shelf
        self._asking = asking
        self._sent = sent
        self._turns = Turns()
        self._changes: set[asyncio.Task[Any]] = set()

    def open(self) -> None:
        """Answer other brokers from now on."""
        if self._asking is not None:
            self._asking.answer_with(self._answered)

    async def close(self) -> None:
        """Answer nobody, and give up what is under way here: the next change of its topic finds what there is of it."""
        if self._asking is not None:
            self._asking.answer_with(None)
        for change in self._changes:
            change.cancel()
        await asyncio.gather(*self._changes, return_exceptions=True)

    @property
    def known_to(self) -> frozenset[int]:
        return frozenset(self._brokers)

    # --- changes ------------------------------------------------------------------------------------------

    async def create(self, wanted: Entry) -> Entry:
        """Make a topic, whose life is found here. Raises as `Coordinator.create_topic`, and `JournalFailed`."""
        place(wanted.name, wanted.partitions, wanted.replication_factor, self._placed_on)  # raises `NotEnoughBrokers`
        answer = await self._by_the_first("create_topic", wanted.name, {"do": "create", **wanted.as_data()})
        return Entry.of(answer["entry"])

    async def delete(self, name: str) -> None:
        """Raises as `Coordinator.delete_topic`, and `JournalFailed`."""
        await self._by_the_first("delete_topic", name, {"do": "delete", "name": name})

    async def _by_the_first(self, verb: str, name: str, question: Mapping[str, Any]) -> Any:
        first = min(self._brokers)
        if first != self._me.id:
            await self._look(verb, name, [first])
        return await self._asked(verb, first, question, WHOLE_WITHIN_S)

    async def _create(self, wanted: Entry) -> Entry:
        async with self._turns.at(wanted.name):
            seen = await self._look("create_topic", wanted.name, self._brokers)
            found = {broker: one.entry for broker, one in seen.items()}
            live = {broker: entry for broker, entry in found.items() if entry is not None and entry.live}
            last = max((entry.life for entry in found.values() if entry is not None), default=0)
            gone = max((entry.life for entry in found.values() if entry is not None and not entry.live), default=0)
            if live and all(entry.life <= gone for entry in live.values()):  # deleted elsewhere, and left there
                await self._drop_everywhere(live)
                live = {}
            if live and not self._is_the_beginning_of(wanted, live):
                raise TopicExists(f"topic {wanted.name!r} exists{self._where(live)}")
            taken = frozenset[int]().union(*(one.lives for one in seen.values()))
            fresh = next(number for number in count(last + 1) if number not in taken)
            life = max(entry.life for entry in live.values()) if live else fresh
            made = replace(wanted, life=life)
            await self._hold(made, [broker for broker in self._brokers if broker not in live])
            return made

    def _is_the_beginning_of(self, wanted: Entry, live: Mapping[int, Entry]) -> bool:
        """Whether some brokers have the topic that is wanted, and it only has to be made on the others."""
        alike = all(entry.is_made_like(wanted) for entry in live.values())
        return len(live) < len(self._brokers) and alike and len({entry.life for entry in live.values()}) == 1

    def _where(self, live: Mapping[int, Entry]) -> str:
        return "" if len(live) == len(self._brokers) else f" on {_said(live)} alone, made otherwise; delete it first"

    async def _hold(self, made: Entry, brokers: Collection[int]) -> None:
        """Make a topic on brokers, or leave none of it there."""
        question = {"do": "keep", **made.as_data()}
        failed = await self._each("create_topic", dict.fromkeys(brokers, question))
        if not failed:
            return
        why = "; ".join(f"{_said([broker])}: {error}" for broker, error in sorted(failed.items()))
        undone = {"do": "keep", **made.deleted().as_data()}
        doubtful = [broker for broker in brokers if _may_have_happened(failed.get(broker))]
        left = await self._each("create_topic", dict.fromkeys(doubtful, undone))
        if left:
            raise OutcomeUnknown(
                f"topic {made.name!r} could not be made everywhere ({why}), and {_said(left)} may have kept it: "
                "create it again, or delete it, when all brokers answer"
            )
        if all(isinstance(error, JournalFailed) for error in failed.values()):
            raise JournalFailed(why if len(self._brokers) > 1 else str(failed[self._me.id]))
        raise Unavailable(f"topic {made.name!r} is not made on any broker: {why}")

    async def _delete(self, name: str) -> None:
        async with self._turns.at(name):
            seen = await self._look("delete_topic", name, self._brokers)
            live = {broker: one.entry for broker, one in seen.items() if one.entry is not None and one.entry.live}
            if not live:
                raise UnknownTopic(f"topic {name!r} is not known here")
            await self._drop_everywhere(live)

    async def _drop_everywhere(self, live: Mapping[int, Entry]) -> None:
        questions = {broker: {"do": "keep", **entry.deleted().as_data()} for broker, entry in live.items()}
        failed = await self._each("delete_topic", questions)
        if not failed:
            return
        why = "; ".join(f"{_said([broker])}: {error}" for broker, error in sorted(failed.items()))
        if failed.keys() == live.keys() and all(isinstance(error, JournalFailed) for error in failed.values()):
            raise JournalFailed(why if len(self._brokers) > 1 else str(failed[self._me.id]))
        name = next(iter(live.values())).name
        raise OutcomeUnknown(f"{_said(failed)} may still have topic {name!r} ({why}): delete it again when all answer")

    # --- questions ----------------------------------------------------------------------------------------

    async def _look(self, verb: str, name: str, brokers: Collection[int]) -> dict[int, Seen]:
        """What brokers keep under a name. Raises `Unavailable` where one does not say; nothing is changed by it."""

        async def looked(broker: int) -> Seen:
            try:
                answer = await self._asked(verb, broker, {"do": "look", "name": name}, LOOK_WITHIN_S)
            except (OutcomeUnknown, Unavailable) as error:
                raise Unavailable(f"topic {name!r} stays as it is: {_said([broker])}: {error}") from error
            if answer["brokers"] != self._placed_on:
                raise InvalidRequest(
                    f"topic {name!r} stays as it is: {_said([broker])} lists brokers {answer['brokers']} in its "
                    f"config, and broker {self._me.id} {self._placed_on}"
                )
            entry = None if answer["entry"] is None else Entry.of(answer["entry"])
            return Seen(entry, frozenset(answer["lives"]))

        return dict(zip(brokers, await _all(looked(broker) for broker in brokers), strict=True))

    async def _each(self, verb: str, questions: Mapping[int, Mapping[str, Any]]) -> dict[int, Exception]:
        """Ask brokers at once; which failed, and how."""

        async def failure(broker: int, question: Mapping[str, Any]) -> Exception | None:
            try:
                await self._asked(verb, broker, question, CHANGE_WITHIN_S)
            except (CoordinationError, JournalFailed) as error:
                return error
            return None

        found = await asyncio.gather(*(failure(broker, question) for broker, question in questions.items()))
        return {broker: error for broker, error in zip(questions, found, strict=True) if error is not None}

    async def _asked(self, verb: str, broker: int, question: Mapping[str, Any], within_s: float) -> Any:
        """A broker's answer, this one's own included. Raises the error that it answers."""
        if broker == self._me.id:
            return await self._answer(question)
        assert self._asking is not None, "a broker that is alone asks itself alone"
        content = encoded(question)
        self._sent(verb, len(content), 1)
        answer = await self._asking.ask(self._brokers[broker], content, within_s)
        self._sent(verb, len(answer), 0)
        found = decoded(answer)
        if "error" in found:
            raise _ERRORS.get(found["error"], OutcomeUnknown)(found["message"])
        return found

    # --- answers ------------------------------------------------------------------------------------------

    async def _answered(self, question: bytes) -> bytes:
        try:
            return encoded(await self._answer(decoded(question)))
        except (CoordinationError, JournalFailed) as error:
            return encoded({"error": type(error).__name__, "message": str(error)})
        except (ValueError, TypeError, KeyError) as error:
            return encoded({"error": InvalidRequest.__name__, "message": f"{question[:100]!r} is no question: {error}"})

    async def _answer(self, question: Mapping[str, Any]) -> dict[str, Any]:
        what = question["do"]
        if what == "look":
            name = question["name"]
            kept = self._shelf.entry(name)
            found = self._shelf.lives(name) if topic_name_fault(name) is None else ()
            lives = [int(life) for life in found if life.isdecimal()]
            return {"brokers": self._placed_on, "entry": None if kept is None else kept.as_data(), "lives": lives}
        if what == "keep":
            self._keep(Entry.of(question))
            return {}
        if what == "create":
            return {"entry": (await self._to_its_end(self._create(Entry.of(question)))).as_data()}
        if what == "delete":
            await self._to_its_end(self._delete(question["name"]))
            return {}
        raise ValueError(f"a broker cannot {what!r}")

    async def _to_its_end(self, change: Coroutine[Any, Any, T]) -> T:
        """Await a change, which goes on though whoever asked for it goes away."""
        task = asyncio.create_task(change)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        return await asyncio.shield(task)

    def _keep(self, entry: Entry) -> None:
        """Make this broker's list say so; what it says already, or was told before what it says, changes nothing."""
        kept = self._shelf.entry(entry.name)
        if kept is not None and (kept.life > entry.life or (kept.life == entry.life and not kept.live)):
            if entry.live:
                raise TopicExists(f"topic {entry.name!r} of life {entry.life} is past; the last had life {kept.life}")
            return
        if kept != entry:
            self._shelf.keep(entry)


def _may_have_happened(error: Exception | None) -> bool:
    """Whether a broker has what it was asked to keep, for all that is known."""
    return error is None or isinstance(error, OutcomeUnknown)


def _said(brokers: Iterable[int]) -> str:
    """As in "brokers 1, 3"."""
    numbers = sorted(brokers)
    return f"broker{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


async def _all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What each comes to, in their order; when all are over, the first error is raised."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for each in found:
        if isinstance(each, BaseException):
            raise each
    return cast("list[T]", found)

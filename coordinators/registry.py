"""The back ends by name, loaded when chosen, so that only the chosen one's libraries are needed; and what a broker
hands to its back end: who it is, its options, journals on its disk, and ways to reach the other brokers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from coordinators.errors import InvalidRequest
from coordinators.model import Broker

if TYPE_CHECKING:
    from coordinators.api import Coordinator

BACK_ENDS: Final = {
    "dsbs": "coordinators.dsbs.coordinator:DsbsCoordinator",
    "static": "coordinators.static.coordinator:StaticCoordinator",
    "zookeeper": "coordinators.zookeeper.coordinator:ZooKeeperCoordinator",
}
Answering = Callable[[bytes], Awaitable[bytes]]


class Journal(Protocol):
    """A durable list of records on the broker's own disk."""

    def append(self, *records: bytes) -> None:
        """Write records, all or none; they survive a crash of the process, and of the machine as far as `fsync` says.

        Raises `JournalFailed`: to try again is safe.
        """

    def replay(self) -> Iterator[bytes]:
        """All records, oldest first; a torn last record is not among them."""

    def replace(self, records: Iterable[bytes]) -> None:
        """Put `records` in the place of all that is there, atomically. Raises `JournalFailed`: what was there stays."""


class Transport(Protocol):
    """Frames between brokers that nobody answers. Best effort: a frame may be lost, late, twice or out of order; it is
    never changed. On one event loop."""

    def listen(self, deliver: Callable[[bytes], None]) -> None:
        """Call `deliver` with each frame that comes in; frames that came before are lost."""

    def send(self, to: Broker, content: bytes) -> None:
        """Send a frame to a broker's `rpc_port`. Never waits; what cannot be sent in time is lost."""


class Asking(Protocol):
    """Questions between brokers. A question reaches the other broker once or not at all. On one event loop."""

    def answer_with(self, answering: Answering | None) -> None:
        """Call `answering` with each question that comes in; None refuses them, as before the first call."""

    async def ask(self, to: Broker, question: bytes, within_s: float) -> bytes:
        """The other broker's answer. Raises `OutcomeUnknown` where none comes in time: it may have been asked."""


def no_lives(_: str) -> Collection[str]:
    return ()


@dataclass(frozen=True, slots=True)
class CoordinatorSetup:
    """`options` are the architecture's own keys from the config file; each back end parses and refuses its own.

    `lives` tells which lives of a topic's name have left something on this broker's disk: a new topic gets none of
    them, even where a journal that was lost or damaged does not remember them.
    """

    me: Broker
    brokers: tuple[Broker, ...]
    journal: Callable[[str], Journal]
    options: Mapping[str, object]
    peers: Transport | None = None
    asking: Asking | None = None
    lives: Callable[[str], Collection[str]] = no_lives


def create(name: str, setup: CoordinatorSetup) -> Coordinator:
    """The named back end, or the one outside the product that stands at `MODULE:CLASS`; not yet started. Raises
    `InvalidRequest` for one that is not there."""
    module_name, _, class_name = BACK_ENDS.get(name, name).partition(":")
    if not class_name:
        known = ", ".join(sorted(BACK_ENDS))
        raise InvalidRequest(f"coordinator must be one of {known}, or MODULE:CLASS of another, not {name!r}")
    try:
        found = getattr(import_module(module_name), class_name)
    except (ImportError, AttributeError, SyntaxError, ValueError) as error:
        raise InvalidRequest(f"coordinator {name} cannot be loaded: {error}") from error
    return cast("Callable[[CoordinatorSetup], Coordinator]", found)(setup)

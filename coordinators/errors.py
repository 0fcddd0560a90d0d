"""Errors of the coordination layer. Each class says whether the operation certainly did not happen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinators.model import TopicPartition

NAMED_MAX: Final = 10


class CoordinationError(Exception):
    """Root. `definite` is True where the operation certainly did not happen; False where it may have."""

    definite: ClassVar[bool] = True


class InvalidRequest(CoordinationError):
    """The request can never succeed as it is; the message says what is allowed."""


class UnknownTopic(CoordinationError):
    """No such topic or partition is known here."""


class TopicExists(CoordinationError):
    """The topic is there already, with other partitions or settings or none that differ."""


class NotEnoughBrokers(CoordinationError):
    """More replicas were asked for than there are brokers."""


class Unsupported(CoordinationError):
    """This architecture cannot do it, by design."""


class BrokerIdTaken(CoordinationError):
    """Another live broker has the same id."""


class StaleEpoch(CoordinationError):
    """Another broker leads, or the partition has been led at a higher epoch. The caller leads no longer."""


class NotCoordinator(CoordinationError):
    """Another broker serves the consumer group; the client asks again which one."""


class Unavailable(CoordinationError):
    """The coordination service cannot be reached, or this broker's lease has ended; nothing was done. Clients retry."""


class Unreadable(CoordinationError):
    """What the coordination layer holds cannot be understood; the message names the place and what is wrong there."""


class OutcomeUnknown(CoordinationError):
    """The request was sent and no answer came: it may have happened."""

    definite = False


class JournalFailed(Exception):
    """The disk refused a journal that a broker lends. Definite: what was to be written is not in it; to try again is
    safe. No `CoordinationError`, for it is the broker's storage that failed."""


def lost_disk(broker: int, lost: Sequence[TopicPartition]) -> str:
    """What a broker says that is new on its disk, and known to the others as the one that held these partitions."""
    named = ", ".join(f"{at.topic}-{at.partition}" for at in lost[:NAMED_MAX])
    more = ", ..." if len(lost) > NAMED_MAX else ""
    return (
        f"broker {broker} has lost its disk, and with it what was in {len(lost)} partitions: {named}{more}; nobody "
        "leads them until their topics are deleted and made again"
    )

"""What a broker hands to its coordination layer at start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinators.api import Journal
from coordinators.model import Broker

if TYPE_CHECKING:
    from coordinators.dsbs.transport import Transport
    from coordinators.transport import Asking


def no_lives(_: str) -> Collection[str]:
    return ()


@dataclass(frozen=True, slots=True)
class CoordinatorSetup:
    """`options` are the architecture's own keys from the config file; each back end parses and refuses its own.

    `peers` and `asking` are ways to reach the other brokers, for the back ends that are made of brokers. `lives` tells
    of which lives of a topic's name something lies on this broker's disk: a topic that is made gets none of them,
    though a journal that was lost or damaged does not remember them.
    """

    me: Broker
    brokers: tuple[Broker, ...]
    journal: Callable[[str], Journal]
    options: Mapping[str, object]
    peers: Transport | None = None
    asking: Asking | None = None
    lives: Callable[[str], Collection[str]] = no_lives

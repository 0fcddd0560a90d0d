"""What is asked of ZooKeeper, and how a request finds that it cannot be; many requests at once, within bounds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from coordinators.errors import CoordinationError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

IN_FLIGHT_MAX: Final = 128
T = TypeVar("T")


class Node(NamedTuple):
    """A znode as it was read. `owner` is the session that an ephemeral one goes with, or 0; `made_by` the transaction
    that made it; `changed_ms` when it was written last, in ms since 1970 by ZooKeeper's clock."""

    data: bytes
    version: int
    owner: int
    made_by: int
    changed_ms: int


class Listing(NamedTuple):
    """Names of a znode's children, and of the znode itself which transaction made it, and its version."""

    names: list[str]
    made_by: int
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    path: str
    data: bytes = b""
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    """Of an existing znode; only at `version`, unless that is -1."""

    path: str
    data: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Delete:
    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    """That a znode exists, and is at `version` unless that is -1."""

    path: str
    version: int = -1


Operation = Create | Write | Delete | Check


class Conflict(CoordinationError):
    """An operation found its znode otherwise than it must be; nothing was changed. See the classes below."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: {(type(self).__doc__ or '').lower()}")
        self.path = path


class Exists(Conflict):
    """It exists already."""


class Missing(Conflict):
    """It does not exist."""


class Changed(Conflict):
    """It has been changed."""


class HasChildren(Conflict):
    """It has children."""


async def together(work: Iterable[Coroutine[None, None, T]]) -> list[T]:
    """All results, in order, of at most `IN_FLIGHT_MAX` at once. Raises what the first to fail raises."""
    results: list[T] = []
    remaining = iter(work)
    while part := list(islice(remaining, IN_FLIGHT_MAX)):
        # One alone, as a commit after each batch is, needs no task.
        results.extend([await part[0]] if len(part) == 1 else await asyncio.gather(*part))
    return results

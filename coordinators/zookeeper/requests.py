"""What is asked of ZooKeeper, and how a request finds that it cannot be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from coordinators.errors import CoordinationError


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

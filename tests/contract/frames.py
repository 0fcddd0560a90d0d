"""What passes between a test and the process of a coordinator. Both ends are this project's tests, so it is pickled."""

from __future__ import annotations

import asyncio
import copyreg
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from coordinators.errors import CoordinationError
from coordinators.model import Broker, ClusterView

_SIZE_BYTES: Final = 4


def _as_it_was(mapping: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(mapping)


copyreg.pickle(MappingProxyType, lambda mapping: (_as_it_was, (dict(mapping),)))


@dataclass(frozen=True, slots=True)
class Hello:
    me: Broker
    brokers: tuple[Broker, ...]
    options: Mapping[str, object]
    journals: Path


@dataclass(frozen=True, slots=True)
class Call:
    token: int
    verb: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """What the coordinator's view is by now, and the outcome of a call if it is one that is told of."""

    view: ClusterView
    token: int = 0
    value: object = None
    error: CoordinationError | None = None


async def read(reader: asyncio.StreamReader) -> Any:
    """The next message. Raises `IncompleteReadError` where there is none."""
    size = int.from_bytes(await reader.readexactly(_SIZE_BYTES))
    return pickle.loads(await reader.readexactly(size))


def write(writer: asyncio.StreamWriter, message: object) -> None:
    content = pickle.dumps(message)
    writer.write(len(content).to_bytes(_SIZE_BYTES) + content)

"""A lock for each name: work on one thing is done one after another, in the order of asking; on different things at
once. A name takes memory only while somebody works on it or waits."""

from __future__ import annotations

from asyncio import Lock
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(slots=True)
class _Line:
    length: int = 0
    lock: Lock = field(default_factory=Lock)


class Turns:
    """`name in turns` while somebody has a turn at it, or waits for one."""

    def __init__(self) -> None:
        self._lines: dict[str, _Line] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._lines

    @asynccontextmanager
    async def at(self, name: str) -> AsyncIterator[None]:
        line = self._lines.setdefault(name, _Line())
        line.length += 1
        try:
            async with line.lock:
                yield
        finally:
            line.length -= 1
            if not line.length:
                del self._lines[name]

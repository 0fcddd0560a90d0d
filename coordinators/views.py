"""What a broker knows of its cluster, handed out as snapshots: the present one, and every next one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinators.model import ClusterView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from coordinators.model import Broker, Topic


class Views:
    """The present view, and whoever waits for the next. On one event loop."""

    def __init__(self) -> None:
        self.present = ClusterView(version=0)
        self._changed = asyncio.Event()
        self._closed = False

    def publish(
        self,
        *,
        brokers: Mapping[int, Broker] | None = None,
        topics: Mapping[str, Topic] | None = None,
        controller: int | None = None,
    ) -> None:
        """Replace what is given. A view that says nothing new is not published."""
        old = self.present
        new = replace(
            old,
            brokers=old.brokers if brokers is None else MappingProxyType(dict(brokers)),
            topics=old.topics if topics is None else MappingProxyType(dict(topics)),
            controller=old.controller if controller is None else controller,
        )
        if new != old:
            self.present = replace(new, version=old.version + 1)
            self._wake()

    def close(self) -> None:
        """There is no next view: who waits for one is told so."""
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def follow(self) -> AsyncIterator[ClusterView]:
        """The present view, then each newer one; the newest alone where several came at once. Ends with `close`."""
        seen = -1
        while not self._closed:
            changed = self._changed
            if self.present.version != seen:
                seen = self.present.version
                yield self.present
            else:
                await changed.wait()

"""The bytes that all connections together may hold for requests larger than their usual buffer, and whose turn it is.

A request takes them as its own bytes come in, so an announced size alone takes nothing. Where none are left it waits:
its socket is read no further, and those that wait are served in the order in which they came. Requests that are half
read must not wait for each other for ever. So as many bytes as the largest request needs are kept for one request at
a time, the one that has waited longest: it has the *right of way*, and becomes whole whatever the others hold. The
others need not send what they announced; only the one with the right of way has to, and its connection sees to that.

Pure: no clock and no socket.
"""

from __future__ import annotations

from typing import Protocol


class Holder(Protocol):
    """A taker of bytes. `go_on` says that a wait is over; `give_back` asks for what no request under way needs."""

    @property
    def waits(self) -> bool: ...

    def go_on(self) -> None: ...

    def give_back(self) -> None: ...


class Budget:
    """`bytes_max` for all together; one request needs at most `request_bytes_max`."""

    def __init__(self, bytes_max: int, request_bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bytes_left = bytes_max - min(bytes_max, request_bytes_max)  # for those without the right of way
        self._taken: dict[Holder, int] = {}
        self._waiting: dict[Holder, int] = {}  # in the order in which they came
        self._first: Holder | None = None

    @property
    def crowded(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def has_right_of_way(self, holder: Holder) -> bool:
        return self._first is holder

    def take(self, holder: Holder, size: int) -> bool:
        """Whether it has so many bytes more now; otherwise it waits until `go_on`."""
        if holder is self._first:
            return True
        self._waiting[holder] = size
        if size > self.bytes_left:
            for other in [other for other in self._taken if other is not holder]:
                other.give_back()
        self._serve()
        return holder not in self._waiting

    def release(self, holder: Holder) -> None:
        """It gives back all that it has, and waits for nothing."""
        self._waiting.pop(holder, None)
        self.bytes_left += self._taken.pop(holder, 0)
        if self._first is holder:
            self._first = None
        self._serve()

    def _serve(self) -> None:
        """Let those go on whose turn it is, as far as there is room."""
        while self._waiting:
            holder, size = next(iter(self._waiting.items()))
            if size <= self.bytes_left:
                self.bytes_left -= size
                self._taken[holder] = self._taken.get(holder, 0) + size
            elif self._first is None:
                self._first = holder
            else:
                return
            del self._waiting[holder]
            if holder.waits:  # else it is asking just now
                holder.go_on()

"""One broker's ZooKeeper session, spoken with from asyncio: reads and transactions, what they cost, and the lease.

kazoo works in a thread of its own (`handler.py`, `client.py`, which alone import it). Any number of requests may be
unanswered; their answers, watches and connections that come and go are told on the event loop in one order.

**The lease.** kazoo's own state is not one: a client that keeps sending never pings, so it calls a connection that
has been silent for a minute connected, long after the server has expired the session. The server keeps a session for
its timeout after it heard from it last; whoever has an answer knows that it was heard after the *sending* of what was
answered. So the lease ends one session timeout after the latest such moment, less a margin, whatever kazoo says.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any, Final

from coordinators.errors import InvalidRequest, OutcomeUnknown, Unavailable
from coordinators.zookeeper.client import Client, failed, transaction
from coordinators.zookeeper.requests import Create, Listing, Missing, Node, Operation, Write
from coordinators.zookeeper.znodes import ZNODE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinators.meter import Meter
    from coordinators.zookeeper.client import State
    from coordinators.zookeeper.handler import Answer

CONNECT_WITHIN_S: Final = 10.0
LEASE_SHARE: Final = 5 / 6  # of the session timeout; the rest is the margin to notice the end and to stop
HEARTBEATS_IN_A_TIMEOUT: Final = 6
# A server that is just starting takes connections that it never answers: each attempt gets a part of the timeout.
ATTEMPTS_IN_A_TIMEOUT: Final = 6
ATTEMPT_S_MIN: Final = 0.5
# What requests and answers take on the wire besides paths and data, as the protocol lays them out.
_REQUEST_BYTES: Final = 16
_ANSWER_BYTES: Final = 20
_STAT_BYTES: Final = 68
_MULTI_BYTES: Final = 9


class Lease:
    """`tenure` grows when what was answered by now may have passed to another."""

    def __init__(self, timeout_ms: int) -> None:
        self.tenure = 0
        self._heard_at = -inf
        self._confirmed = False
        self.grant(timeout_ms)

    def grant(self, timeout_ms: int) -> None:
        """A server bounds timeouts by its own settings."""
        self.timeout_s = timeout_ms / 1000
        self.lasts_s = self.timeout_s * LEASE_SHARE

    @property
    def ends(self) -> float:
        """By the session's clock. Over from the start, and again with each new session, until `confirm`."""
        return self._heard_at + self.lasts_s if self._confirmed else -inf

    def begin(self) -> None:
        """Another session has begun, of which nothing is known."""
        self._heard_at = -inf
        self._confirmed = False

    def heard(self, sent_at: float) -> None:
        """The server has answered what was sent then."""
        self._heard_at = max(self._heard_at, sent_at)

    def confirm(self) -> None:
        """The broker is registered with this session and has read what it needs: from now on it counts."""
        self._confirmed = True

    def doubt(self) -> None:
        """The broker is registered no longer: the lease is over until the next `confirm`."""
        self._confirmed = False
        self.tenure += 1

    def wants_renewal(self, now: float) -> bool:
        return self._heard_at + self.timeout_s / HEARTBEATS_IN_A_TIMEOUT <= now


class Session:
    """Sends requests and keeps the lease. A lost session is followed by a new one, by itself.

    `on_watch` is told the path of each watch that fired, `on_state` of each connection that came or went; both run on
    the event loop, and whoever uses the session sets them. A watch is lost with its connection: whoever set it reads
    again after `on_state`. Of kazoo, `client` has what one meddles with: its connection, its session's password.
    """

    def __init__(
        self,
        hosts: str,
        *,
        timeout_ms: int,
        auth: str | None,
        meter: Meter,
        clock: Callable[[], float],
        attempt_s: float | None = None,
    ) -> None:
        self.hosts = hosts
        self.id = 0
        self.lease = Lease(timeout_ms)
        self._meter = meter
        self._clock = clock
        self.on_watch: Callable[[str], None] = lambda path: None
        self.on_state: Callable[[], None] = lambda: None
        self._silent = False
        self._connected_once = asyncio.Event()
        timeout_s = self.lease.timeout_s
        self.client = Client(
            hosts,
            timeout_s=timeout_s,
            attempt_s=attempt_s or max(ATTEMPT_S_MIN, timeout_s / ATTEMPTS_IN_A_TIMEOUT),
            auth=auth,
            clock=clock,
            on_heard=self._heard,
            on_state=self._moved,
            on_watch=self._fired,
        )

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect. Raises `Unavailable` where nobody answers within `CONNECT_WITHIN_S`."""
        self.client.start()
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await self._connected_once.wait()
        except TimeoutError:
            await self.stop()
            raise Unavailable(f"no ZooKeeper answered at {self.hosts} within {CONNECT_WITHIN_S:.0f} s") from None

    async def stop(self) -> None:
        """End the session: its ephemeral znodes go at once if ZooKeeper answers, else when it expires."""
        self.lease.doubt()
        await self.client.stop()

    def _moved(self, state: State) -> None:
        self._silent = False
        self.lease.tenure += 1
        if state.connected:
            self._connected_once.set()
            self.lease.grant(state.granted_ms)
            if state.session_id != self.id:
                self.id = state.session_id
                self.lease.begin()
        elif state.lost:
            self.id = 0
            self.lease.doubt()
        self.on_state()

    def _fired(self, path: str) -> None:
        self.on_watch(path)

    # --- the lease ----------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether a request that is sent now has a chance: kazoo is connected, and answers have been coming."""
        return bool(self.client.kazoo.connected) and not self._silent

    def confirm(self, session_id: int) -> None:
        """The broker has entered the cluster with this session."""
        if session_id == self.id != 0:
            self.lease.confirm()

    def wants_heartbeat(self) -> bool:
        """Called some times in each session timeout: whether to send something because nothing else was.

        Not while something is unanswered: more requests would only keep kazoo from noticing the silence. What has been
        unanswered for as long as a lease lasts is given up, and with it the connection, until something is heard.
        """
        now = self._clock()
        oldest = self.client.oldest
        if oldest is not None and oldest + self.lease.lasts_s <= now:
            self._silent = True
            self.client.give_up()
        return self.client.oldest is None and self.client.kazoo.connected and self.lease.wants_renewal(now)

    def _heard(self, sent_at: float) -> None:
        if self._silent:
            self._silent = False
            self.on_state()
        self.lease.heard(sent_at)

    # --- requests -----------------------------------------------------------------------------------------

    async def get(self, kind: str, path: str, *, watch: bool = False, probe: bool = False) -> Node | None:
        """A znode, or None where there is none (a watch is then not set). Raises `Unavailable`.

        `probe` asks even when answers have stopped coming.
        """
        watched = self.client.watched if watch else None
        found = await self._read(kind, 1, path, self.client.kazoo.get_async, path, watched, probe=probe)
        if found is None:
            return None
        data, stat = found
        self._meter.sent(kind, _ANSWER_BYTES + 4 + len(data) + _STAT_BYTES, requests=0)
        return Node(data, stat.version, stat.ephemeralOwner, stat.czxid, stat.mtime)

    async def children(self, kind: str, path: str) -> list[str] | None:
        """Names of a znode's children, or None where there is no such znode. Raises `Unavailable`."""
        names: list[str] | None = await self._read(kind, 1, path, self.client.kazoo.get_children_async, path)
        if names is not None:
            self._meter.sent(kind, _ANSWER_BYTES + _names_bytes(names), requests=0)
        return names

    async def listing(self, kind: str, path: str) -> Listing | None:
        """The same with the znode's own origin, of one and the same moment; and sets a watch. Raises `Unavailable`."""
        listed = self.client.kazoo.get_children_async
        found = await self._read(kind, 1, path, listed, path, self.client.watched, True)
        if found is None:
            return None
        names, stat = found
        self._meter.sent(kind, _ANSWER_BYTES + _names_bytes(names) + _STAT_BYTES, requests=0)
        return Listing(names, stat.czxid, stat.version)

    async def sync(self, kind: str, path: str) -> None:
        """Wait until the server that is read from has seen every change that was made by now. Raises `Unavailable`."""
        await self._read(kind, 0, path, self.client.kazoo.sync_async, path)
        self._meter.sent(kind, _ANSWER_BYTES + 4 + len(path), requests=0)

    async def _read(
        self, kind: str, flags_bytes: int, path: str, send: Callable[..., Answer], *what: object, probe: bool = False
    ) -> Any:
        """The answer, or None where there is no such znode."""
        self._check_reachable(probe=probe)
        self._meter.sent(kind, _REQUEST_BYTES + flags_bytes + len(path))
        try:
            return await self.client.ask(path, send, *what)
        except Missing:
            return None
        except OutcomeUnknown as error:  # nothing happens by a read
            raise Unavailable(str(error)) from error

    async def commit(self, kind: str, *operations: Operation) -> None:
        """All of `operations`, or none. Raises a `Conflict`, `InvalidRequest` (too large), `Unavailable` (nothing was
        sent), `OutcomeUnknown`."""
        match operations:
            case [Write(path, data, version)]:
                await self._write(kind, path, data, version)
            case _:
                await self._transact(kind, operations)

    async def _write(self, kind: str, path: str, data: bytes, version: int) -> None:
        """A transaction of one write, which is what a commit of offsets is: as a plain request it costs half."""
        self._check_reachable()
        self._meter.sent(kind, _REQUEST_BYTES + len(path) + 4 + len(data) + 4)
        await self.client.ask(path, self.client.kazoo.set_async, path, data, version)
        self._meter.sent(kind, _ANSWER_BYTES + _STAT_BYTES, requests=0)

    async def _transact(self, kind: str, operations: Sequence[Operation]) -> None:
        made = transaction(self.client.kazoo, operations)
        size = sum(_MULTI_BYTES + len(request.serialize()) for request in made.operations)
        if size > ZNODE_BYTES_MAX:
            raise InvalidRequest(f"{size} bytes in one transaction, and ZooKeeper takes at most {ZNODE_BYTES_MAX}")
        self._check_reachable()
        self._meter.sent(kind, size + _MULTI_BYTES + 12)
        results = await self.client.ask(operations[0].path, made.commit_async)
        answers = sum(_MULTI_BYTES + _answer_bytes(operation) for operation in operations)
        self._meter.sent(kind, _ANSWER_BYTES + answers + _MULTI_BYTES, requests=0)
        if (error := failed(operations, results)) is not None:
            raise error

    def _check_reachable(self, *, probe: bool = False) -> None:
        if not (self.connected or (probe and self.client.kazoo.connected)):
            raise self.client.unreachable()


def _names_bytes(names: Sequence[str]) -> int:
    return 4 + sum(4 + len(name.encode()) for name in names)


def _answer_bytes(operation: Operation) -> int:
    """What a transaction's answer holds for one that succeeded."""
    match operation:
        case Create(path):
            return 4 + len(path)
        case Write():
            return _STAT_BYTES
        case _:
            return 0

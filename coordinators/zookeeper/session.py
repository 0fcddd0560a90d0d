"""One broker's ZooKeeper session, spoken with from asyncio. Besides `handler.py` the only importer of kazoo.

kazoo works in threads, which `handler.py` keeps off the way of requests. What its thread has to say (a connection that
came or went, and now and then an answer) is put into one inbox and taken out on the event loop, a whole burst at a
time; nothing in kazoo's thread ever waits for the loop. Requests leave at once, or with those of the same turn of the
loop, any number of them unanswered.

**The lease.** kazoo's own state is not one: a client that keeps sending never pings, so it calls a connection that
has been silent for a minute connected, long after the server has expired the session. The server keeps a session for
its timeout after it heard from it last; whoever has an answer knows that it was heard after the *sending* of what was
answered. So the lease ends one session timeout after the latest such moment, less a margin, whatever kazoo says.
"""

from __future__ import annotations

import asyncio
import logging
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, Any, Final

from kazoo import exceptions as kazoo
from kazoo.client import KazooClient, KazooState
from kazoo.protocol.paths import _prefix_root
from kazoo.protocol.serialization import GetData, SetData
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL

from coordinators.errors import CoordinationError, InvalidRequest, OutcomeUnknown, Unavailable
from coordinators.zookeeper.crossing import Inbox, Reply
from coordinators.zookeeper.handler import Handler
from coordinators.zookeeper.requests import (
    Changed,
    Check,
    Create,
    Delete,
    Exists,
    HasChildren,
    Listing,
    Missing,
    Node,
    Operation,
    Write,
)
from coordinators.zookeeper.znodes import ZNODE_BYTES_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinators.meter import Meter

CONNECT_WITHIN_S: Final = 10.0
STOP_WITHIN_S: Final = 2.0
# Hazard: kazoo's own backoff grows to a minute, and expires healthy brokers after a restart of ZooKeeper. Without a
# backoff its jitter, which multiplies the pause before, lets the pause dwindle to nothing in a long outage.
RECONNECT_DELAY_S: Final = 0.25
# A server that is just starting takes connections that it never answers: each attempt gets a part of the timeout.
ATTEMPT_S_MIN: Final = 0.5
LEASE_SHARE: Final = 5 / 6  # of the session timeout; the rest is the margin to notice the end and to stop
# What requests and answers take on the wire besides paths and data, as the protocol lays them out.
_REQUEST_BYTES: Final = 16
_ANSWER_BYTES: Final = 20
_STAT_BYTES: Final = 68
_MULTI_BYTES: Final = 9
_PATHS_REMEMBERED_MAX: Final = 4096
# Every failed attempt to connect is a warning of kazoo's, some of them each second; the broker says it once.
_KAZOO_LOG: Final = logging.getLogger("coordinators.zookeeper.kazoo")
_KAZOO_LOG.setLevel(logging.ERROR)
# Errors that are a server's answer, and so prove that it heard the request.
_ANSWERS: Final = (
    kazoo.NoNodeError,
    kazoo.NodeExistsError,
    kazoo.BadVersionError,
    kazoo.NotEmptyError,
    kazoo.NoAuthError,
)


_CONFLICTS: Final = {
    kazoo.NodeExistsError: Exists,
    kazoo.NoNodeError: Missing,
    kazoo.BadVersionError: Changed,
    kazoo.NotEmptyError: HasChildren,
}


class Session:
    """Sends requests and keeps the lease. A lost session is followed by a new one, by itself.

    `on_watch` is told the path of each watch that fired, `on_state` of each connection that came or went; both run on
    the event loop. A watch is lost with its connection: whoever set it reads again after `on_state`.
    """

    def __init__(
        self,
        hosts: str,
        *,
        timeout_ms: int,
        auth: str | None,
        meter: Meter,
        clock: Callable[[], float],
        on_watch: Callable[[str], None],
        on_state: Callable[[], None],
    ) -> None:
        self.hosts = hosts
        self.id = 0
        self._take_timeout(timeout_ms)
        self._meter = meter
        self._clock = clock
        self._on_watch = on_watch
        self._on_state = on_state
        self._unanswered: dict[Reply, None] = {}  # in the order of sending
        self._silent = False
        self._heard_at = -inf
        self._confirmed = False
        self.tenure = 0  # grows when what was answered by now may have passed to another
        self._inbox = Inbox()
        self._handler = Handler(
            self._inbox, self._answered, self._failed, attempt_s=max(ATTEMPT_S_MIN, self.timeout_s / 6)
        )
        self._client = KazooClient(
            hosts,
            timeout=self.timeout_s,
            handler=self._handler,
            auth_data=[("digest", auth)] if auth else None,
            default_acl=CREATOR_ALL_ACL if auth else None,
            logger=_KAZOO_LOG,
            connection_retry=KazooRetry(
                max_tries=-1, delay=RECONNECT_DELAY_S, backoff=1, max_jitter=0, sleep_func=self._handler.sleep_func
            ),
        )
        self._handler.serve(self._client)

    # --- life ---------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect. Raises `Unavailable` where nobody answers within `CONNECT_WITHIN_S`."""
        self._inbox.open(asyncio.get_running_loop())
        self._connected_once = asyncio.Event()
        self._client.add_listener(self._state_changed)
        self._client.start_async()
        try:
            async with asyncio.timeout(CONNECT_WITHIN_S):
                await self._connected_once.wait()
        except TimeoutError:
            await self.stop()
            raise Unavailable(f"no ZooKeeper answered at {self.hosts} within {CONNECT_WITHIN_S:.0f} s") from None

    async def stop(self) -> None:
        """End the session: its ephemeral znodes go at once if ZooKeeper answers, else when it expires."""
        self._confirmed = False
        self._handler.lend_no_more()
        stopping = asyncio.ensure_future(asyncio.to_thread(self._client.stop))
        try:
            await asyncio.wait_for(asyncio.shield(stopping), STOP_WITHIN_S)
        except TimeoutError:
            self._handler.abort()
            await stopping
        self._client.close()
        self._fail_unanswered()

    def _state_changed(self, state: str) -> None:
        """In kazoo's thread, which must never wait: a listener that blocks hangs the client."""
        known = self._client.client_id
        granted_ms = self._handler.granted_ms() if state == KazooState.CONNECTED else 0
        self._inbox.put(self._moved, state, (known[0] if known else 0, granted_ms))

    def _moved(self, state: str, session: tuple[int, int]) -> None:
        self._silent = False
        self.tenure += 1
        if state == KazooState.CONNECTED:
            self._connected(*session)
        elif state == KazooState.LOST:
            self.id = 0
            self._confirmed = False
        self._on_state()

    def _connected(self, session_id: int, granted_ms: int) -> None:
        self._connected_once.set()
        # The server bounds timeouts by its own settings, and kazoo keeps the outcome to itself.
        self._take_timeout(granted_ms)
        self._handler.lend(asyncio.get_running_loop())
        if session_id != self.id:
            self.id = session_id
            self._heard_at = -inf
            self._confirmed = False

    def _take_timeout(self, timeout_ms: int) -> None:
        self.timeout_s = timeout_ms / 1000
        self.lease_s = self.timeout_s * LEASE_SHARE

    # --- the lease ----------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether a request that is sent now has a chance: kazoo is connected, and answers have been coming."""
        return bool(self._client.connected) and not self._silent

    @property
    def lease_ends(self) -> float:
        """By `clock`. Over from the start, and again with each new session, until `confirm`."""
        return self._heard_at + self.lease_s if self._confirmed else -inf

    def confirm(self, session_id: int) -> None:
        """The broker is registered with this session and has read what it needs: from now on it counts."""
        self._confirmed = session_id == self.id != 0

    @property
    def client_cpu_ns(self) -> int:
        """Processor time of kazoo since the start: its threads', and the event loop's in their place."""
        return self._handler.cpu_ns

    def doubt(self) -> None:
        """The broker is registered no longer: the lease is over until the next `confirm`."""
        self._confirmed = False
        self.tenure += 1

    def wants_heartbeat(self) -> bool:
        """Called some times in each session timeout: whether to send something because nothing else was.

        Not while something is unanswered: more requests would only keep kazoo from noticing the silence. What has been
        unanswered for as long as a lease lasts is given up, and with it the connection, until something is heard.
        """
        now = self._clock()
        oldest = next(iter(self._unanswered), None)
        if oldest is not None and oldest.sent_at + self.lease_s <= now:
            self._silent = True
            self._fail_unanswered()
        return not self._unanswered and self._client.connected and self._heard_at + self.timeout_s / 6 <= now

    # --- requests -----------------------------------------------------------------------------------------

    async def get(self, kind: str, path: str, *, watch: bool = False, probe: bool = False) -> Node | None:
        """A znode, or None where there is none (a watch is then not set). Raises `Unavailable`.

        `probe` asks even when answers have stopped coming.
        """
        size = _REQUEST_BYTES + 1 + len(path)
        request = GetData(_whole(path), self._watched if watch else None)
        try:
            data, stat = await self._sent(kind, size, self._called, request, despite_silence=probe)
        except kazoo.NoNodeError:
            return None
        except kazoo.KazooException as error:
            raise _refused(path, error) from error
        self._meter.sent(kind, _ANSWER_BYTES + 4 + len(data) + _STAT_BYTES, requests=0)
        return Node(data, stat.version, stat.ephemeralOwner, stat.czxid, stat.mtime)

    async def children(self, kind: str, path: str) -> list[str] | None:
        """Names of a znode's children, or None where there is no such znode. Raises `Unavailable`."""
        names: list[str] | None = await self._listed(kind, path, self._client.get_children_async, path)
        if names is not None:
            self._meter.sent(kind, _ANSWER_BYTES + _names_bytes(names), requests=0)
        return names

    async def listing(self, kind: str, path: str) -> Listing | None:
        """The same with the znode's own origin, of one and the same moment; and sets a watch. Raises `Unavailable`."""
        found = await self._listed(kind, path, self._client.get_children_async, path, self._watched, True)
        if found is None:
            return None
        names, stat = found
        self._meter.sent(kind, _ANSWER_BYTES + _names_bytes(names) + _STAT_BYTES, requests=0)
        return Listing(names, stat.czxid, stat.version)

    async def _listed(self, kind: str, path: str, send: Callable[..., Reply], *what: object) -> Any:
        try:
            return await self._sent(kind, _REQUEST_BYTES + 1 + len(path), send, *what)
        except kazoo.NoNodeError:
            return None
        except kazoo.KazooException as error:
            raise _refused(path, error) from error

    async def sync(self, kind: str, path: str) -> None:
        """Wait until the server that is read from has seen every change that was made by now. Raises `Unavailable`."""
        try:
            await self._sent(kind, _REQUEST_BYTES + len(path), self._client.sync_async, path)
        except kazoo.KazooException as error:
            raise _refused(path, error) from error
        self._meter.sent(kind, _ANSWER_BYTES + 4 + len(path), requests=0)

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
        size = _REQUEST_BYTES + len(path) + 4 + len(data) + 4
        try:
            await self._sent(kind, size, self._called, SetData(_whole(path), data, version))
        except kazoo.KazooException as error:
            raise _unwritten(path, error) from error
        self._meter.sent(kind, _ANSWER_BYTES + _STAT_BYTES, requests=0)

    async def _transact(self, kind: str, operations: Sequence[Operation]) -> None:
        transaction = self._client.transaction()
        for operation in operations:
            _add(transaction, operation)
        size = sum(_MULTI_BYTES + len(request.serialize()) for request in transaction.operations)
        if size > ZNODE_BYTES_MAX:
            raise InvalidRequest(f"{size} bytes in one transaction, and ZooKeeper takes at most {ZNODE_BYTES_MAX}")
        try:
            results = await self._sent(kind, size + _MULTI_BYTES + 12, transaction.commit_async)
        except kazoo.KazooException as error:
            raise _unwritten(operations[0].path, error) from error
        answers = sum(_MULTI_BYTES + _answer_bytes(operation) for operation in operations)
        self._meter.sent(kind, _ANSWER_BYTES + answers + _MULTI_BYTES, requests=0)
        for operation, result in zip(operations, results, strict=True):
            if isinstance(result, Exception) and not isinstance(
                result, kazoo.RolledBackError | kazoo.RuntimeInconsistency
            ):
                raise _unwritten(operation.path, result)

    def _sent(
        self, kind: str, size_bytes: int, send: Callable[..., Reply], *what: object, despite_silence: bool = False
    ) -> asyncio.Future[Any]:
        """What to await for the answer. Raises `Unavailable` where nothing can be sent."""
        if not (self.connected or (despite_silence and self._client.connected)):
            raise Unavailable(f"ZooKeeper at {self.hosts} cannot be reached")
        sent_at = self._clock()  # before it is: the lease may be shorter than it could be, never longer
        reply = send(*what)
        reply.sent_at = sent_at
        reply.future = asyncio.get_running_loop().create_future()
        self._unanswered[reply] = None
        self._meter.sent(kind, size_bytes)
        return reply.future

    def _called(self, request: object) -> Reply:
        """As kazoo's own methods do it. Of the requests that each message needs they would check every part again."""
        reply = self._handler.async_result()
        self._client._call(request, reply)
        return reply

    # --- what kazoo's thread has to say, on the event loop -----------------------------------------------------

    def _answered(self, reply: Reply, answer: object) -> None:
        if reply.passed_on(answer):
            return
        self._heard(reply)
        if self._unanswered.pop(reply, reply) is None and not reply.future.done():
            reply.future.set_result(answer)

    def _failed(self, reply: Reply, error: Exception) -> None:
        if reply.passed_on(error):
            return
        if isinstance(error, _ANSWERS):
            self._heard(reply)
        if self._unanswered.pop(reply, reply) is None and not reply.future.done():
            reply.future.set_exception(error)

    def _heard(self, reply: Reply) -> None:
        if self._silent:
            self._silent = False
            self._on_state()
        if reply.sent_at > self._heard_at:
            self._heard_at = reply.sent_at

    def _fail_unanswered(self) -> None:
        for reply in list(self._unanswered):
            self._failed(reply, kazoo.ConnectionLoss())

    def _watched(self, event: Any) -> None:
        """On the loop or in kazoo's thread. Watches that end with their connection have no path: `on_state` tells."""
        if event.path is not None:
            self._inbox.put(self._fired, event.path, None)

    def _fired(self, path: str, _: object) -> None:
        self._on_watch(path)


@lru_cache(_PATHS_REMEMBERED_MAX)
def _whole(path: str) -> str:
    """A path as kazoo's own methods would send it."""
    whole: str = _prefix_root("", path)
    return whole


def _add(transaction: Any, operation: Operation) -> None:
    match operation:
        case Create(path, data, ephemeral):
            transaction.create(path, data, ephemeral=ephemeral)
        case Write(path, data, version):
            transaction.set_data(path, data, version)
        case Delete(path, version):
            transaction.delete(path, version)
        case Check(path, version):
            transaction.check(path, version)


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


def _refused(path: str, error: Exception) -> CoordinationError:
    """What a read that failed is to the caller: nothing has happened."""
    if isinstance(error, kazoo.NoAuthError):
        return InvalidRequest(f"{path}: ZooKeeper does not allow it; check the option auth")
    return Unavailable(f"{path}: {type(error).__name__}")


def _unwritten(path: str, error: Exception) -> CoordinationError:
    """What a write that failed is to the caller."""
    if (conflict := _CONFLICTS.get(type(error))) is not None:
        return conflict(path)
    if isinstance(error, kazoo.NoAuthError):
        return InvalidRequest(f"{path}: ZooKeeper does not allow it; check the option auth")
    return OutcomeUnknown(f"{path}: {type(error).__name__} before an answer came")

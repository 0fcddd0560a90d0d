"""kazoo's client on an event loop: a future for each request, errors in the words of this package.

kazoo wakes its thread by a byte for each request, through a socket that holds some 270; whoever asks for more waits in
the call. So a part of the requests are with kazoo at a time, and the rest wait here in their order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kazoo import exceptions as kazoo
from kazoo.client import KazooClient, KazooState
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL

from coordinators.errors import CoordinationError, InvalidRequest, OutcomeUnknown, Unavailable
from coordinators.zookeeper.handler import Handler
from coordinators.zookeeper.requests import (
    Changed,
    Check,
    Create,
    Delete,
    Exists,
    HasChildren,
    Missing,
    Operation,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinators.zookeeper.handler import Answer

WITH_KAZOO_MAX: Final = 128
STOP_WITHIN_S: Final = 2.0
# Hazard: kazoo's own backoff grows to a minute, and expires healthy brokers after a restart of ZooKeeper. Without a
# backoff its jitter, which multiplies the pause before, lets the pause dwindle to nothing in a long outage.
RECONNECT_DELAY_S: Final = 0.25
# Every failed attempt to connect is a warning of kazoo's, some of them each second; the broker says it once.
_KAZOO_LOG: Final = logging.getLogger("coordinators.zookeeper.kazoo")
_KAZOO_LOG.setLevel(logging.ERROR)
_CONFLICTS: Final = {
    kazoo.NodeExistsError: Exists,
    kazoo.NoNodeError: Missing,
    kazoo.BadVersionError: Changed,
    kazoo.NotEmptyError: HasChildren,
}
# Errors that are a server's answer, and so prove that it heard the request.
_ANSWERS: Final = (*_CONFLICTS, kazoo.NoAuthError)


class State(NamedTuple):
    """A connection that came, or one that went, and with it perhaps (`lost`) its session."""

    connected: bool
    lost: bool
    session_id: int
    granted_ms: int


@dataclass(eq=False, slots=True)
class Request:
    path: str
    send: Callable[..., Answer]
    what: tuple[object, ...]
    future: asyncio.Future[Any]
    sent_at: float = 0.0


class Client:
    """Told on the event loop: `on_heard` of each answer when its request was sent, `on_state` of each connection that
    came or went, `on_watch` the path of each watch that fired."""

    def __init__(
        self,
        hosts: str,
        *,
        timeout_s: float,
        attempt_s: float,
        auth: str | None,
        clock: Callable[[], float],
        on_heard: Callable[[float], None],
        on_state: Callable[[State], None],
        on_watch: Callable[[str], None],
    ) -> None:
        self._hosts = hosts
        self._clock = clock
        self._on_heard = on_heard
        self._on_state = on_state
        self._on_watch = on_watch
        self._with_kazoo: dict[Request, None] = {}  # in the order of sending
        self._waiting: deque[Request] = deque()
        self._stopping = False
        self._on_loop_ns = 0
        self._handler = Handler(self._answered, self._broken, attempt_s=attempt_s)
        self.kazoo = KazooClient(
            hosts,
            timeout=timeout_s,
            handler=self._handler,
            auth_data=[("digest", auth)] if auth else None,
            default_acl=CREATOR_ALL_ACL if auth else None,
            logger=_KAZOO_LOG,
            connection_retry=KazooRetry(
                max_tries=-1, delay=RECONNECT_DELAY_S, backoff=1, max_jitter=0, sleep_func=self._handler.sleep_func
            ),
        )

    # --- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect."""
        self._handler.inbox.open(asyncio.get_running_loop())
        self.kazoo.add_listener(self._state_changed)
        self.kazoo.start_async()

    async def stop(self) -> None:
        """End the session: its ephemeral znodes go at once if ZooKeeper answers, else when it expires."""
        self._stopping = True
        stopping = asyncio.ensure_future(asyncio.to_thread(self.kazoo.stop))
        try:
            await asyncio.wait_for(asyncio.shield(stopping), STOP_WITHIN_S)
        except TimeoutError:
            self._handler.abort()
            await stopping
        self.kazoo.close()
        self.give_up()

    def abandon(self) -> None:
        """Break the connection and make no other; the session goes on until its timeout, as after a crash."""
        self._handler.abort()

    def _state_changed(self, state: str) -> None:
        """In kazoo's thread, which must never wait: a listener that blocks hangs the client."""
        session_id, _ = self.kazoo.client_id or (0, b"")
        connected = state == KazooState.CONNECTED
        granted_ms = self._handler.granted_ms() if connected else 0
        self._handler.inbox.put(self._on_state, State(connected, state == KazooState.LOST, session_id, granted_ms))

    def watched(self, event: Any) -> None:
        """For kazoo to call when a watch fires. Those that end with their connection have no path: `on_state` tells."""
        if event.path is not None:
            self._handler.inbox.put(self._on_watch, event.path)

    def _broken(self) -> None:
        """kazoo's thread has ended, and what it was asked has failed; another one connects anew."""
        asyncio.get_running_loop().call_later(RECONNECT_DELAY_S, self._start_again)

    def _start_again(self) -> None:
        if not self._stopping:
            self.kazoo.start_async()

    # --- requests -----------------------------------------------------------------------------------------

    def ask(self, path: str, send: Callable[..., Answer], *what: object) -> asyncio.Future[Any]:
        """What to await for the answer to `send(*what)`, one of kazoo's methods; `path` is what errors are about.

        What it raises: a `Conflict`, `InvalidRequest`, `Unavailable` (nothing was sent), `OutcomeUnknown`.
        """
        request = Request(path, send, what, asyncio.get_running_loop().create_future())
        if len(self._with_kazoo) < WITH_KAZOO_MAX:
            self._send(request)
        else:
            self._waiting.append(request)
        return request.future

    def _send(self, request: Request) -> None:
        request.sent_at = self._clock()  # before it is: the lease may be shorter than it could be, never longer
        start_ns = time.thread_time_ns()
        # What it is answered is told in a later turn of the event loop, and so after all this.
        request.send(*request.what).request = request
        self._on_loop_ns += time.thread_time_ns() - start_ns
        self._with_kazoo[request] = None

    def _answered(self, answer: Answer) -> None:
        if (request := answer.request) is None:
            return
        error = answer.exception
        if error is None or isinstance(error, _ANSWERS):
            self._on_heard(request.sent_at)
        self._with_kazoo.pop(request, None)
        if not request.future.done():
            if error is None:
                request.future.set_result(answer.value)
            else:
                request.future.set_exception(_refusal(request.path, error))
        self._send_waiting()

    def _send_waiting(self) -> None:
        while self._waiting and len(self._with_kazoo) < WITH_KAZOO_MAX:
            request = self._waiting.popleft()
            if request.future.done():
                continue
            if self.kazoo.connected:
                self._send(request)
            else:
                request.future.set_exception(self.unreachable())

    @property
    def oldest(self) -> float | None:
        """When what is unanswered for longest was sent."""
        return next((request.sent_at for request in self._with_kazoo), None)

    def give_up(self) -> None:
        """Wait for no answer any longer."""
        given_up, self._with_kazoo = self._with_kazoo, {}
        waiting, self._waiting = self._waiting, deque()
        for request in given_up:
            if not request.future.done():
                request.future.set_exception(_refusal(request.path, kazoo.ConnectionLoss()))
        for request in waiting:
            if not request.future.done():
                request.future.set_exception(self.unreachable())

    def unreachable(self) -> Unavailable:
        return Unavailable(f"ZooKeeper at {self._hosts} cannot be reached")

    @property
    def cpu_ns(self) -> int:
        """Processor time of kazoo since the start: its threads', and what it does in the calls of the event loop."""
        return self._handler.threads_cpu_ns + self._on_loop_ns


# --- transactions -------------------------------------------------------------------------------------------------


def transaction(client: KazooClient, operations: Sequence[Operation]) -> Any:
    """kazoo's, with these operations. Its answer has a result for each, which may be an error (`failed`)."""
    made = client.transaction()
    for operation in operations:
        match operation:
            case Create(path, data, ephemeral):
                made.create(path, data, ephemeral=ephemeral)
            case Write(path, data, version):
                made.set_data(path, data, version)
            case Delete(path, version):
                made.delete(path, version)
            case Check(path, version):
                made.check(path, version)
    return made


def failed(operations: Sequence[Operation], results: Sequence[object]) -> CoordinationError | None:
    """Why a transaction was not carried out: what the first operation met that was not refused for another's sake."""
    for operation, result in zip(operations, results, strict=True):
        if isinstance(result, Exception) and not isinstance(result, kazoo.RolledBackError | kazoo.RuntimeInconsistency):
            return _refusal(operation.path, result)
    return None


def _refusal(path: str, error: Exception) -> CoordinationError:
    if (conflict := _CONFLICTS.get(type(error))) is not None:
        return conflict(path)
    if isinstance(error, kazoo.NoAuthError):
        return InvalidRequest(f"{path}: ZooKeeper does not allow it; check the option auth")
    return OutcomeUnknown(f"{path}: {type(error).__name__} before an answer came")

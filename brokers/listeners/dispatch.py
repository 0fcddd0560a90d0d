"""One client's requests other than Produce, read and handed to what carries them out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from brokers.listeners.events import Event, Needs
from brokers.listeners.requests.commit import commit_fault, commit_one
from brokers.listeners.requests.table import HANDLERS
from brokers.listeners.service import Caller
from brokers.wire.apis import fetch as fetch_wire
from brokers.wire.apis.fetch import FetchRequest
from brokers.wire.apis.offsets import CommitTemplate, SingleCommit, is_of_one_partition
from brokers.wire.apis.table import Api, ApiKey
from brokers.wire.errors import ErrorCode
from brokers.wire.header import RequestHeader, answer, read_body, read_request, version_list

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from brokers.listeners.answers import Pieces
    from brokers.listeners.service import Service
    from coordinators.errors import CoordinationError, JournalFailed

# ANSWERED with pieces, PROMISED with `Promised`, BLOCKED with a coroutine for pieces; or what it needs, not begun.
Outcome = tuple[Event, Any] | Needs
_COMMIT: Final = ApiKey.OFFSET_COMMIT.name
_ANSWERED: Final = Event.ANSWERED
_NOT_BEGUN: Final = Needs.COMMITS


class Promised(NamedTuple):
    """A commit that waits to be `kept`."""

    kept: asyncio.Future[None]
    template: CommitTemplate
    commit: SingleCommit

    def answer(self, error: CoordinationError | JournalFailed | None) -> bytes:
        """When it is over."""
        return self.template.answer(self.commit, ErrorCode.NONE if error is None else commit_fault(error))


class Dispatch:
    """`host` is the client's."""

    def __init__(self, service: Service, host: str) -> None:
        self._service = service
        self._host = host
        self._commit_template: CommitTemplate | None = None

    def carry_out(self, frame: bytes, *, commits: bool) -> FetchRequest | Outcome:
        """The result of a request, or the question of a fetch. `commits` are in flight. Raises `Malformed`."""
        if self._commit_template is not None and (commit := self._commit_template.read(frame)) is not None:
            return self._commit_one(self._commit_template, commit)
        header, api, at = read_request(frame)
        if api.key is ApiKey.FETCH:
            return fetch_wire.read(frame, at, header.version, header.correlation_id)
        if commits and api.key is not ApiKey.OFFSET_COMMIT:
            return _NOT_BEGUN
        if api.key is ApiKey.API_VERSIONS:
            self._service.metrics.kafka.add(api.key.name)
            if header.version <= api.version_max:
                read_body(header, api, frame, at)
            return _ANSWERED, [version_list(header, api)]
        message = read_body(header, api, frame, at)
        if api.key is ApiKey.OFFSET_COMMIT and is_of_one_partition(message):
            template = self._commit_template = CommitTemplate(frame, header.version, message)
            return self._commit_one(template, cast("SingleCommit", template.read(frame)))
        return _NOT_BEGUN if commits else self._handle(header, api, message)

    def _handle(self, header: RequestHeader, api: Api, message: object) -> Outcome:
        self._service.metrics.kafka.add(api.key.name)
        result = HANDLERS[api.key](self._service, Caller(header.client_id, self._host, header.version), message)
        if asyncio.iscoroutine(result):
            return Event.BLOCKED, _answer(header, api, result)
        return _ANSWERED, [answer(header, api, result)]

    def _commit_one(self, template: CommitTemplate, commit: SingleCommit) -> Outcome:
        self._service.metrics.kafka.add(_COMMIT)
        kept = commit_one(self._service, template, commit)
        if isinstance(kept, ErrorCode):
            return _ANSWERED, [template.answer(commit, kept)]
        return Event.PROMISED, Promised(kept, template, commit)


def read_fetch(frame: bytes) -> FetchRequest:
    """Raises `Malformed`."""
    header, _, at = read_request(frame)
    return fetch_wire.read(frame, at, header.version, header.correlation_id)


async def _answer(header: RequestHeader, api: Api, result: Awaitable[object]) -> Pieces:
    return [answer(header, api, await result)]

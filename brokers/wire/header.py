"""The header before each request, and the frame around each answer."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from brokers.wire.apis.table import SERVED, SERVED_VERSIONS, Api, ApiKey, ApiVersionsResponse
from brokers.wire.errors import ErrorCode, Malformed, MalformedReason
from brokers.wire.schema import decode, encode, skip_tags, truncated

if TYPE_CHECKING:
    from typing import Any

_FIXED: Final = Struct(">hhih")
_ANSWER_HEAD: Final = Struct(">ii")
_CORRELATION_BYTES: Final = 4


class RequestHeader(NamedTuple):
    """`client_id` is text for people; it need not be UTF-8."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str


def read_request(frame: bytes) -> tuple[RequestHeader, Api, int]:
    """Header, API, and where the body begins. Raises `Malformed`, also for what is not served.

    A too new version of ApiVersions is let through, body unread: `version_list` answers it.
    """
    if len(frame) < _FIXED.size:
        raise truncated(_FIXED.size, len(frame))
    key, version, correlation_id, client_length = _FIXED.unpack_from(frame, 0)
    at = _FIXED.size
    if client_length < -1:
        raise Malformed(MalformedReason.NEGATIVE_LENGTH, f"client id of {client_length} bytes")
    client_end = at + max(client_length, 0)
    if client_end > len(frame):
        raise truncated(client_length, len(frame) - at)
    header = RequestHeader(key, version, correlation_id, frame[at:client_end].decode(errors="replace"))
    api = SERVED.get(key)
    if api is None:
        raise Malformed(MalformedReason.UNKNOWN_API, f"key {key}")
    if not api.version_min <= version <= api.version_max:
        if api.key is ApiKey.API_VERSIONS and version > api.version_max:
            return header, api, client_end
        raise Malformed(MalformedReason.UNSUPPORTED_VERSION, f"{api.key.name} {version}")
    return header, api, skip_tags(frame, client_end) if api.flexible(version) else client_end


def read_body(header: RequestHeader, api: Api, frame: bytes, at: int) -> Any:
    """The request's message. Raises `Malformed`."""
    assert api.request is not None
    return decode(api.request, header.version, frame[at:], flexible=api.flexible(header.version))


def answer(header: RequestHeader, api: Api, message: object) -> bytes:
    """The answer's frame. That of ApiVersions has the old header in every version, so that anybody can read it."""
    flexible = api.flexible(header.version)
    body = encode(message, header.version, flexible=flexible)
    tags = b"\0" if flexible and api.key is not ApiKey.API_VERSIONS else b""
    return _ANSWER_HEAD.pack(_CORRELATION_BYTES + len(tags) + len(body), header.correlation_id) + tags + body


def version_list(header: RequestHeader, api: Api) -> bytes:
    """The answer to ApiVersions; version 0 with an error to a client that is newer than this broker (KIP-511)."""
    if header.version > api.version_max:
        refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=SERVED_VERSIONS)
        return answer(header._replace(version=0), api, refusal)
    return answer(header, api, ApiVersionsResponse(error_code=ErrorCode.NONE, api_keys=SERVED_VERSIONS))

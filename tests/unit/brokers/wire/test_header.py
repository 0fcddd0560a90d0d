"""Request headers, answer frames, and the one API that answers versions it does not know."""

from __future__ import annotations

import struct

import pytest

from brokers.wire.apis.membership import HeartbeatResponse
from brokers.wire.apis.table import SERVED, ApiKey
from brokers.wire.errors import ErrorCode, Malformed, MalformedReason
from brokers.wire.header import RequestHeader, answer, read_body, read_request, version_list
from tests.property.brokers.wire.reference import theirs


def head(key: int, version: int, client_id: bytes | None = b"me") -> bytes:
    size = -1 if client_id is None else len(client_id)
    return struct.pack(">hhih", key, version, 77, size) + (client_id or b"")


@pytest.mark.parametrize("version", [0, 4, 8])
def test_a_request_of_kafka_python_is_read(version: int) -> None:
    request = theirs("MetadataRequest")([("topic",)], version=version)
    request.with_header(correlation_id=77, client_id="me")
    frame = bytes(request.encode(header=True))
    header, api, at = read_request(frame)
    assert header == RequestHeader(ApiKey.METADATA, version, 77, "me")
    assert [topic.name for topic in read_body(header, api, frame, at).topics] == ["topic"]


@pytest.mark.parametrize(
    ("client_id", "text"), [(None, ""), (b"", ""), (b"\xff", "\N{REPLACEMENT CHARACTER}"), (b"x" * 32767, "x" * 32767)]
)
def test_any_client_id_will_do(client_id: bytes | None, text: str) -> None:
    assert read_request(head(ApiKey.HEARTBEAT, 0, client_id))[0].client_id == text


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b"\0" * 9, MalformedReason.TRUNCATED),
        (head(-1, 0), MalformedReason.UNKNOWN_API),
        (head(32767, 0), MalformedReason.UNKNOWN_API),
        (head(4, 0), MalformedReason.UNKNOWN_API),
        (head(ApiKey.METADATA, -1), MalformedReason.UNSUPPORTED_VERSION),
        (head(ApiKey.METADATA, 9), MalformedReason.UNSUPPORTED_VERSION),
        (head(ApiKey.API_VERSIONS, -1), MalformedReason.UNSUPPORTED_VERSION),
        (struct.pack(">hhih", ApiKey.METADATA, 0, 1, -2), MalformedReason.NEGATIVE_LENGTH),
        (struct.pack(">hhih", ApiKey.METADATA, 0, 1, 5) + b"four", MalformedReason.TRUNCATED),
        (head(ApiKey.OFFSET_FETCH, 6) + b"\xff\xff\xff\xff\x0f", MalformedReason.COUNT),
        (head(ApiKey.OFFSET_FETCH, 6) + b"\xff\xff\xff\xff\x7f", MalformedReason.VARINT),
        (head(ApiKey.OFFSET_FETCH, 6) + b"\x80\x80\x80\x80\x80\x01", MalformedReason.VARINT),
        (head(ApiKey.OFFSET_FETCH, 6) + b"\x02\x05\x00\x05\x00", MalformedReason.TAGS),
        (head(ApiKey.OFFSET_FETCH, 6) + b"\x01\x05\x09", MalformedReason.TRUNCATED),
        (head(ApiKey.OFFSET_FETCH, 6), MalformedReason.TRUNCATED),
    ],
)
def test_what_is_no_request_is_malformed(frame: bytes, reason: MalformedReason) -> None:
    with pytest.raises(Malformed) as refused:
        read_request(frame)
    assert refused.value.reason is reason


def test_unknown_tags_are_stepped_over() -> None:
    frame = head(ApiKey.OFFSET_FETCH, 6) + b"\x02\x03\x01x\x04\x00" + b"\x02g\x00\x00"
    header, api, at = read_request(frame)
    body = read_body(header, api, frame, at)
    assert (body.group_id, body.topics) == ("g", None)


@pytest.mark.parametrize("version", [0, 1])
def test_an_answer_is_framed_as_kafka_python_does(version: int) -> None:
    header = RequestHeader(ApiKey.HEARTBEAT, version, 77, "")
    reference = theirs("HeartbeatResponse")(*([0, 27] if version else [27]), version=version)
    reference.with_header(correlation_id=77)
    frame = answer(header, SERVED[ApiKey.HEARTBEAT], HeartbeatResponse(error_code=27))
    assert frame == bytes(reference.encode(header=True, framed=True))


@pytest.mark.parametrize("version", range(4))
def test_api_versions_lists_what_is_served(version: int) -> None:
    header = RequestHeader(ApiKey.API_VERSIONS, version, 77, "")
    reference = theirs("ApiVersionsResponse").decode(
        version_list(header, SERVED[ApiKey.API_VERSIONS])[8:], version=version
    )
    assert reference.error_code == 0
    listed = {(api.api_key, api.min_version, api.max_version) for api in reference.api_keys}
    assert listed == {(api.key, api.version_min, api.version_max) for api in SERVED.values()}


@pytest.mark.parametrize("version", [4, 5, 32767])
def test_api_versions_answers_a_too_new_client_in_version_0(version: int) -> None:
    header, api, _ = read_request(head(ApiKey.API_VERSIONS, version) + b"\xff" * 9)
    reference = theirs("ApiVersionsResponse").decode(version_list(header, api)[8:], version=0)
    assert reference.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert any(entry.api_key == ApiKey.API_VERSIONS for entry in reference.api_keys)

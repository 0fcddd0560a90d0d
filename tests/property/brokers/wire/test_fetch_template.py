"""What the template of a fetch reads by hand is what the general reading gives."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.wire.apis import fetch
from brokers.wire.apis.fetch import FetchRequest, FetchTemplate, template_of
from brokers.wire.apis.table import SERVED, ApiKey
from brokers.wire.header import read_request

API = SERVED[ApiKey.FETCH]
VERSIONS = range(API.version_min, API.version_max + 1)
TOPICS = ("orders", "o\N{SNOWMAN}")
numbers32 = st.integers(-(2**31), 2**31 - 1)
numbers64 = st.integers(-(2**63), 2**63 - 1)
quick = settings(max_examples=100, deadline=None)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def frame_of(
    version: int,
    correlation_id: int,
    part: tuple[int, ...],
    *,
    topic: str = TOPICS[0],
    wait_ms: int = 500,
    empty: tuple[str, ...] = (),
    empty_behind: tuple[str, ...] = (),
    rack: int = 1,
) -> bytes:
    head = struct.pack(">hhi", ApiKey.FETCH, version, correlation_id) + text("reader")
    head += struct.pack(">iiiib", -1, wait_ms, 1, 50_000_000, 1)
    if version >= 7:
        head += struct.pack(">ii", 0, -1)
    topics = [*((name, ()) for name in empty), (topic, (part,)), *((name, ()) for name in empty_behind)]
    head += struct.pack(">i", len(topics))
    wanted = b"".join(
        text(name) + struct.pack(">i", len(of)) + b"".join(one(version, p) for p in of) for name, of in topics
    )
    tail = struct.pack(">i", 0) if version >= 7 else b""
    return head + wanted + tail + (text("rack" * rack) if version >= 11 else b"")


def one(version: int, part: tuple[int, ...]) -> bytes:
    number, epoch, offset, bytes_max = part
    epochs = struct.pack(">i", epoch) if version >= 9 else b""
    log_start = struct.pack(">q", -1) if version >= 5 else b""
    return struct.pack(">i", number) + epochs + struct.pack(">q", offset) + log_start + struct.pack(">i", bytes_max)


def read(frame: bytes) -> tuple[FetchRequest, int]:
    header, api, at = read_request(frame)
    assert api.key is ApiKey.FETCH
    return fetch.read(frame, at, header.version, header.correlation_id), at


def template(frame: bytes) -> FetchTemplate:
    request, at = read(frame)
    found = template_of(frame, at, request)
    assert found is not None
    return found


parts = st.tuples(numbers32, numbers32, numbers64, numbers32)


@pytest.mark.parametrize("version", VERSIONS)
@quick
@given(first=parts, later=parts, correlation_id=st.integers(0, 2**31 - 1), topic=st.sampled_from(TOPICS))
def test_a_request_that_fits_is_read_as_any_other(
    version: int, first: tuple[int, ...], later: tuple[int, ...], correlation_id: int, topic: str
) -> None:
    known = template(frame_of(version, 1, first, topic=topic))
    frame = frame_of(version, correlation_id, later, topic=topic)
    assert known.read(frame) == read(frame)[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_differs_elsewhere_has_no_template(version: int) -> None:
    part = (0, 1, 5, 1000)
    known = template(frame_of(version, 1, part))
    others = [frame_of(other, 1, part) for other in VERSIONS if other != version]
    others += [frame_of(version, 1, part, topic="others"), frame_of(version, 1, part, wait_ms=100)]
    assert [known.read(other) for other in others] == [None] * len(others)


@pytest.mark.parametrize("version", VERSIONS)
@quick
@given(data=st.data())
def test_damage_has_no_template_or_is_read_as_any_other(version: int, data: st.DataObject) -> None:
    frame = bytearray(frame_of(version, 1, (3, 4, 5, 1000)))
    known = template(bytes(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    found = known.read(bytes(frame))
    assert found is None or found == read(bytes(frame))[0]


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_at_every_byte_or_longer_it_has_no_template(version: int) -> None:
    frame = frame_of(version, 1, (3, 4, 5, 1000))
    known = template(frame)
    assert known.read(frame) is not None
    assert [known.read(frame[:end]) for end in range(len(frame))] == [None] * len(frame)
    assert known.read(frame + b"\0") is None


@pytest.mark.parametrize("version", VERSIONS)
def test_topics_without_partitions_and_long_requests_make_no_template(version: int) -> None:
    part = (3, 4, 5, 1000)
    frames = [
        frame_of(version, 1, part, empty=("aa",)),
        frame_of(version, 1, part, empty_behind=("aa",)),
        frame_of(version, 1, part, topic="t" * 1000),
    ]
    if version >= 11:
        frames.append(frame_of(version, 1, part, rack=300))
    for frame in frames:
        request, at = read(frame)
        assert len(request.parts) == 1
        assert template_of(frame, at, request) is None

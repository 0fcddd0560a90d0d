"""What the template reads and writes by hand is what the codecs read and write."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.wire.apis.offsets import (
    CommitTemplate,
    OffsetCommitPartition,
    OffsetCommitPartitionResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResponse,
    SingleCommit,
    is_of_one_partition,
)
from brokers.wire.apis.table import SERVED, ApiKey
from brokers.wire.errors import Malformed
from brokers.wire.header import RequestHeader, answer, read_body, read_request
from tests.integration.kafka.raw import request
from tests.property.brokers.wire.messages import messages

API = SERVED[ApiKey.OFFSET_COMMIT]
VERSIONS = range(API.version_min, API.version_max + 1)
FRAME_AT = 4  # behind the length, which the connection has taken off
quick = settings(max_examples=100, deadline=None)


def frame_of(version: int, message: OffsetCommitRequest, correlation_id: int) -> bytes:
    return request(ApiKey.OFFSET_COMMIT, version, message, correlation_id)[FRAME_AT:]


def read_by_codec(frame: bytes) -> tuple[RequestHeader, OffsetCommitRequest]:
    header, api, at = read_request(frame)
    message: OffsetCommitRequest = read_body(header, api, frame, at)
    return header, message


def of_one_partition(data: st.DataObject, version: int, name: str) -> OffsetCommitRequest:
    message: OffsetCommitRequest = data.draw(messages(OffsetCommitRequest, version))
    part = data.draw(messages(OffsetCommitPartition, version))
    return replace(message, topics=(OffsetCommitTopic(name=name, partitions=(part,)),))


def single(header: RequestHeader, message: OffsetCommitRequest) -> SingleCommit:
    part = message.topics[0].partitions[0]
    return SingleCommit(
        header.correlation_id,
        part.partition_index,
        part.committed_offset,
        part.committed_leader_epoch,
        part.committed_metadata,
    )


@pytest.mark.parametrize("version", VERSIONS)
@quick
@given(data=st.data(), correlation_id=st.integers(0, 2**31 - 1))
def test_a_commit_that_fits_is_read_as_the_codec_reads_it(
    version: int, data: st.DataObject, correlation_id: int
) -> None:
    first = of_one_partition(data, version, "orders")
    template = CommitTemplate(frame_of(version, first, 1), version, first)
    later = replace(first, topics=of_one_partition(data, version, "orders").topics)
    frame = frame_of(version, later, correlation_id)
    assert template.read(frame) == single(*read_by_codec(frame))


@pytest.mark.parametrize("version", VERSIONS)
@quick
@given(data=st.data())
def test_another_request_fits_only_if_it_says_the_same_of_the_member(version: int, data: st.DataObject) -> None:
    first = of_one_partition(data, version, "orders")
    template = CommitTemplate(frame_of(version, first, 1), version, first)
    other = data.draw(messages(OffsetCommitRequest, version))
    found = template.read(frame_of(version, other, 2))
    assert found is None or replace(other, topics=()) == replace(first, topics=())


@pytest.mark.parametrize("version", VERSIONS)
@quick
@given(data=st.data())
def test_damage_is_left_to_the_codec_or_read_as_it_reads_it(version: int, data: st.DataObject) -> None:
    first = of_one_partition(data, version, "orders")
    frame = bytearray(frame_of(version, first, 1))
    template = CommitTemplate(bytes(frame), version, first)
    for _ in range(data.draw(st.integers(1, 3))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(frame[: data.draw(st.integers(0, len(frame)))] if data.draw(st.booleans()) else frame)
    found = template.read(damaged)
    if found is not None:
        header, message = read_by_codec(damaged)
        assert is_of_one_partition(message)
        assert (found, template.request.group_id, template.topic) == (
            single(header, message),
            message.group_id,
            message.topics[0].name,
        )
        assert replace(message, topics=()) == replace(first, topics=())


@pytest.mark.parametrize("version", VERSIONS)
def test_cut_at_every_byte_it_is_left_to_the_codec_which_refuses_it(version: int) -> None:
    part = OffsetCommitPartition(partition_index=1, committed_offset=5, committed_metadata="m\N{SNOWMAN}")
    topics = (OffsetCommitTopic(name="orders", partitions=(part,)),)
    message = OffsetCommitRequest(group_id="readers", generation_id=1, member_id="me", topics=topics)
    frame = frame_of(version, message, 1)
    template = CommitTemplate(frame, version, message)
    for end in range(len(frame)):
        assert template.read(frame[:end]) is None
        with pytest.raises(Malformed):
            read_by_codec(frame[:end])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("error", [0, 16, 25])
def test_an_answer_has_the_codecs_bytes(version: int, error: int) -> None:
    part = OffsetCommitPartition(partition_index=7, committed_offset=5, committed_metadata=None)
    topics = (OffsetCommitTopic(name="orders", partitions=(part,)),)
    message = OffsetCommitRequest(group_id="readers", generation_id=1, member_id="me", topics=topics)
    frame = frame_of(version, message, 77)
    template = CommitTemplate(frame, version, message)
    commit = template.read(frame)
    assert commit is not None
    parts = (OffsetCommitPartitionResponse(partition_index=7, error_code=error),)
    response = OffsetCommitResponse(topics=(OffsetCommitTopicResponse(name="orders", partitions=parts),))
    header = RequestHeader(ApiKey.OFFSET_COMMIT, version, 77, "")
    assert template.answer(commit, error) == answer(header, API, response)

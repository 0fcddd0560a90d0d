"""OffsetCommit and OffsetFetch: a group's place, kept by the coordination layer.

Where an experiment commits after every batch, `commit_one` is on the path of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from brokers.listeners.requests.groups import serves
from brokers.listeners.service import code_of
from brokers.wire.apis.offsets import (
    OffsetCommitPartitionResponse,
    OffsetCommitResponse,
    OffsetCommitTopicResponse,
    OffsetFetchPartitionResponse,
    OffsetFetchResponse,
    OffsetFetchTopicResponse,
)
from brokers.wire.errors import ErrorCode
from coordinators.errors import CoordinationError, InvalidRequest, JournalFailed, Unavailable
from coordinators.model import COMMIT_METADATA_MAX, Committed, TopicPartition

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Iterable, Mapping

    from brokers.listeners.service import Caller, Service
    from brokers.wire.apis.offsets import CommitTemplate, OffsetCommitRequest, OffsetFetchRequest, SingleCommit

_NOTHING = Committed(offset=-1)
KEEPING_FAILED: Final = (CoordinationError, JournalFailed)


async def commit(service: Service, caller: Caller, request: OffsetCommitRequest) -> OffsetCommitResponse:
    fault = _group_fault(service, request)
    errors: dict[TopicPartition, ErrorCode] = {}
    offsets: dict[TopicPartition, Committed] = {}
    for topic in request.topics:
        for part in topic.partitions:
            at = TopicPartition(topic.name, part.partition_index)
            errors[at] = fault or _place_fault(part.committed_offset, part.committed_metadata)
            if errors[at] is ErrorCode.NONE:
                metadata = part.committed_metadata or ""
                offsets[at] = Committed(part.committed_offset, part.committed_leader_epoch, metadata)
    if offsets:
        errors |= await _keep(service, request.group_id, offsets)
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitTopicResponse(
                name=topic.name,
                partitions=tuple(
                    OffsetCommitPartitionResponse(
                        partition_index=part.partition_index,
                        error_code=errors[TopicPartition(topic.name, part.partition_index)],
                    )
                    for part in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def commit_one(service: Service, template: CommitTemplate, commit: SingleCommit) -> ErrorCode | asyncio.Future[None]:
    """A commit of one partition: what came of it, or a future where the coordination layer has to wait."""
    fault = _group_fault(service, template.request) or _place_fault(commit.offset, commit.metadata)
    if fault:
        return fault
    offsets = {
        TopicPartition(template.topic, commit.partition): Committed(
            commit.offset, commit.leader_epoch, commit.metadata or ""
        )
    }
    try:
        rest = service.coordinator.begin_commit(template.request.group_id, offsets)
    except KEEPING_FAILED as error:
        return commit_fault(error)
    return ErrorCode.NONE if rest is None else rest


async def _awaited(rest: Awaitable[None]) -> ErrorCode:
    try:
        await rest
    except KEEPING_FAILED as error:
        return commit_fault(error)
    return ErrorCode.NONE


def commit_fault(error: CoordinationError | JournalFailed) -> ErrorCode:
    match error:
        case Unavailable() | JournalFailed():  # clients take a storage error here for the end, and it passes
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case _:
            return code_of(error)


def _group_fault(service: Service, request: OffsetCommitRequest) -> ErrorCode:
    if not serves(service, request.group_id):
        return ErrorCode.NOT_COORDINATOR
    return service.groups.commit_fault(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )


def _place_fault(offset: int, metadata: str | None) -> ErrorCode:
    if offset < 0:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if len(metadata or "") > COMMIT_METADATA_MAX:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


async def _keep(
    service: Service, group_id: str, offsets: Mapping[TopicPartition, Committed]
) -> Mapping[TopicPartition, ErrorCode]:
    """Keep them in one go; if a topic among them is not known, one by one, to tell which. Twice is as good as once."""
    commit_offsets = service.coordinator.commit_offsets
    error = await _awaited(commit_offsets(group_id, offsets))
    if error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or len(offsets) == 1:
        return dict.fromkeys(offsets, error)
    return {at: await _awaited(commit_offsets(group_id, {at: place})) for at, place in offsets.items()}


async def fetch(service: Service, caller: Caller, request: OffsetFetchRequest) -> OffsetFetchResponse:
    error, committed = await _committed(service, request.group_id)
    wanted: dict[str, Iterable[int]] = {}
    if request.topics is None:
        for at in committed:
            wanted[at.topic] = [*wanted.get(at.topic, ()), at.partition]
    else:
        wanted = {topic.name: topic.partition_indexes for topic in request.topics}
    return OffsetFetchResponse(
        error_code=error,
        topics=tuple(
            OffsetFetchTopicResponse(
                name=name,
                partitions=tuple(
                    _row(number, committed.get(TopicPartition(name, number), _NOTHING), error) for number in numbers
                ),
            )
            for name, numbers in wanted.items()
        ),
    )


async def _committed(service: Service, group_id: str) -> tuple[ErrorCode, Mapping[TopicPartition, Committed]]:
    if not serves(service, group_id):
        return ErrorCode.NOT_COORDINATOR, {}
    try:
        return ErrorCode.NONE, await service.coordinator.committed_offsets(group_id)
    except InvalidRequest:
        return ErrorCode.INVALID_GROUP_ID, {}
    except CoordinationError:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, {}


def _row(number: int, place: Committed, error: ErrorCode) -> OffsetFetchPartitionResponse:
    return OffsetFetchPartitionResponse(
        partition_index=number,
        committed_offset=place.offset,
        committed_leader_epoch=place.leader_epoch,
        metadata=place.metadata,
        error_code=error,
    )

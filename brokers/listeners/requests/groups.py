"""FindCoordinator and the group APIs: membership is the machine's (brokers/groups), this is its wire side."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from brokers.groups.members import Join, Protocol, State
from brokers.wire.apis.group_admin import (
    KEY_TYPE_GROUP,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    ListedGroup,
    ListGroupsResponse,
)
from brokers.wire.apis.membership import (
    HeartbeatResponse,
    JoinGroupMember,
    JoinGroupResponse,
    LeaveGroupResponse,
    LeftMember,
    SyncGroupResponse,
)
from brokers.wire.errors import ErrorCode
from coordinators.errors import CoordinationError

if TYPE_CHECKING:
    from brokers.groups.machine import Group
    from brokers.listeners.service import Caller, Service
    from brokers.wire.apis.group_admin import DescribeGroupsRequest, FindCoordinatorRequest, ListGroupsRequest
    from brokers.wire.apis.membership import HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest

_ID_BYTES: Final = 16
_CLIENT_ID_CHARS_MAX: Final = 64
_ID_REQUIRED_SINCE: Final = 4  # KIP-394


def serves(service: Service, group_id: str) -> bool:
    """Whether the group is this broker's to coordinate."""
    return coordinator_id(service, group_id) == service.coordinator.me.id


def coordinator_id(service: Service, group_id: str) -> int | None:
    """None where no live broker is known."""
    try:
        return service.coordinator.group_coordinator(group_id)
    except CoordinationError:
        return None


def find_coordinator(service: Service, caller: Caller, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    if request.key_type != KEY_TYPE_GROUP:
        message = "there are no transactions here"
        return FindCoordinatorResponse(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, error_message=message
        )
    broker_id = coordinator_id(service, request.key)
    broker = None if broker_id is None else service.coordinator.view().brokers.get(broker_id)
    if broker is None:
        return FindCoordinatorResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(
        error_code=ErrorCode.NONE, node_id=broker.id, host=broker.host, port=broker.kafka_port
    )


async def join(service: Service, caller: Caller, request: JoinGroupRequest) -> JoinGroupResponse:
    if not serves(service, request.group_id):
        return JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    name = request.group_instance_id or caller.client_id[:_CLIENT_ID_CHARS_MAX]
    wish = Join(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        fresh_id=f"{name}-{secrets.token_hex(_ID_BYTES)}",
        id_required_first=caller.version >= _ID_REQUIRED_SINCE,
        client_id=caller.client_id,
        client_host=caller.host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(offer.name, offer.metadata) for offer in request.protocols),
    )
    joined = await service.groups.join(request.group_id, wish)
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_name=joined.protocol,
        leader=joined.leader,
        member_id=joined.member_id,
        members=tuple(
            JoinGroupMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in joined.members
        ),
    )


async def sync(service: Service, caller: Caller, request: SyncGroupRequest) -> SyncGroupResponse:
    if not serves(service, request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    synced = await service.groups.sync(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        {row.member_id: row.assignment for row in request.assignments},
    )
    return SyncGroupResponse(error_code=synced.error, assignment=synced.assignment)


def heartbeat(service: Service, caller: Caller, request: HeartbeatRequest) -> HeartbeatResponse:
    if not serves(service, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    error = service.groups.heartbeat(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id
    )
    return HeartbeatResponse(error_code=error)


def leave(service: Service, caller: Caller, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """One member up to version 2, whose error is the whole answer's; a list of them later."""
    if not serves(service, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    leaving = [(member.member_id, member.group_instance_id) for member in request.members]
    alone = [] if leaving else [(request.member_id, None)]
    errors = service.groups.leave(request.group_id, leaving or alone)
    rows = zip(leaving, errors, strict=False)
    return LeaveGroupResponse(
        error_code=errors[0] if alone else ErrorCode.NONE,
        members=tuple(LeftMember(member_id=m, group_instance_id=i, error_code=error) for (m, i), error in rows),
    )


def describe(service: Service, caller: Caller, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=tuple(_described(service, group_id) for group_id in request.groups))


def _described(service: Service, group_id: str) -> DescribedGroup:
    if not serves(service, group_id):
        return DescribedGroup(error_code=ErrorCode.NOT_COORDINATOR, group_id=group_id)
    group = service.groups.group(group_id)
    if group is None:
        return DescribedGroup(error_code=ErrorCode.NONE, group_id=group_id, group_state="Dead")
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=_members(group),
    )


def _members(group: Group) -> tuple[DescribedMember, ...]:
    """Metadata and assignments mean something only once the group has agreed."""
    stable = group.state is State.STABLE
    return tuple(
        DescribedMember(
            member_id=member.id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(group.protocol) if stable else b"",
            member_assignment=member.assignment if stable else b"",
        )
        for member in group.members.values()
    )


def list_groups(service: Service, caller: Caller, request: ListGroupsRequest) -> ListGroupsResponse:
    wanted = set(request.states_filter)
    return ListGroupsResponse(
        error_code=ErrorCode.NONE,
        groups=tuple(
            ListedGroup(group_id=group_id, protocol_type=group.protocol_type, group_state=group.state.value)
            for group_id, group in service.groups.all().items()
            if not wanted or group.state.value in wanted
        ),
    )

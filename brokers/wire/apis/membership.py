"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup: belonging to a consumer group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from brokers.wire.schema import Bytes, Int16, Int32, NullableString, Since, String


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupProtocol:
    name: String
    metadata: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupRequest:
    """`rebalance_timeout_ms` is -1 where the version lacks it: the session timeout stands in."""

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, Since(1)] = -1
    member_id: String
    group_instance_id: Annotated[NullableString, Since(5)] = None
    protocol_type: String
    protocols: tuple[JoinGroupProtocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupMember:
    member_id: String
    group_instance_id: Annotated[NullableString, Since(5)] = None
    metadata: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinGroupResponse:
    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    error_code: Int16
    generation_id: Int32 = -1
    protocol_name: String = ""
    leader: String = ""
    member_id: String = ""
    members: tuple[JoinGroupMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupAssignment:
    member_id: String
    assignment: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupRequest:
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[NullableString, Since(3)] = None
    assignments: tuple[SyncGroupAssignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncGroupResponse:
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    assignment: Bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: Annotated[NullableString, Since(3)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatResponse:
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingMember:
    member_id: String
    group_instance_id: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupRequest:
    """One `member_id` up to version 2, a list of `members` from 3 on."""

    group_id: String
    member_id: Annotated[String, Since(0, until=2)] = ""
    members: Annotated[tuple[LeavingMember, ...], Since(3)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftMember:
    member_id: String
    group_instance_id: NullableString
    error_code: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveGroupResponse:
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    members: Annotated[tuple[LeftMember, ...], Since(3)] = ()

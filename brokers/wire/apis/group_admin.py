"""FindCoordinator, DescribeGroups and ListGroups: looking at consumer groups from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from brokers.wire.apis.metadata import AUTHORIZED_OPERATIONS_UNKNOWN
from brokers.wire.schema import Boolean, Bytes, Int8, Int16, Int32, NullableString, Since, String

KEY_TYPE_GROUP: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorRequest:
    key: String
    key_type: Annotated[Int8, Since(1)] = KEY_TYPE_GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class FindCoordinatorResponse:
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    error_message: Annotated[NullableString, Since(1)] = None
    node_id: Int32 = -1
    host: String = ""
    port: Int32 = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsRequest:
    groups: tuple[String, ...]
    include_authorized_operations: Annotated[Boolean, Since(3)] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    member_id: String
    group_instance_id: Annotated[NullableString, Since(4)] = None
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedGroup:
    error_code: Int16
    group_id: String
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: Annotated[Int32, Since(3)] = AUTHORIZED_OPERATIONS_UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeGroupsResponse:
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    groups: tuple[DescribedGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsRequest:
    states_filter: Annotated[tuple[String, ...], Since(4)] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroup:
    group_id: String
    protocol_type: String
    group_state: Annotated[String, Since(4)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListGroupsResponse:
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    groups: tuple[ListedGroup, ...]

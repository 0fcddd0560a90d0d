"""Which APIs are served, in which versions, and which class reads and writes each; and ApiVersions, which says so.

ApiVersions is the one API that answers a version that it does not know (KIP-511).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Final

from brokers.wire.apis.group_admin import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from brokers.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from brokers.wire.apis.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from brokers.wire.apis.metadata import InitProducerIdRequest, InitProducerIdResponse, MetadataRequest, MetadataResponse
from brokers.wire.apis.offsets import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse
from brokers.wire.apis.topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from brokers.wire.schema import LAST_VERSION, Int16, Int32, Since, String


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    client_software_name: Annotated[String, Since(3)] = ""
    client_software_version: Annotated[String, Since(3)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    api_key: Int16
    min_version: Int16
    max_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Annotated[Int32, Since(1)] = 0


class ApiKey(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    INIT_PRODUCER_ID = 22
    DESCRIBE_CONFIGS = 32


@dataclass(frozen=True, slots=True)
class Api:
    """`request` and `response` are None for Produce and Fetch, which `produce.py` and `fetch.py` do by hand."""

    key: ApiKey
    version_min: int
    version_max: int
    request: type | None = None
    response: type | None = None
    flexible_since: int = LAST_VERSION + 1

    def flexible(self, version: int) -> bool:
        return version >= self.flexible_since


SERVED: Final = {
    api.key: api
    for api in (
        Api(ApiKey.PRODUCE, 3, 7),
        Api(ApiKey.FETCH, 4, 11),
        Api(ApiKey.LIST_OFFSETS, 1, 5, ListOffsetsRequest, ListOffsetsResponse),
        Api(ApiKey.METADATA, 0, 8, MetadataRequest, MetadataResponse),  # 9: see docs/wire.md
        Api(ApiKey.OFFSET_COMMIT, 2, 7, OffsetCommitRequest, OffsetCommitResponse),
        Api(ApiKey.OFFSET_FETCH, 1, 7, OffsetFetchRequest, OffsetFetchResponse, flexible_since=6),
        Api(ApiKey.FIND_COORDINATOR, 0, 2, FindCoordinatorRequest, FindCoordinatorResponse),
        Api(ApiKey.JOIN_GROUP, 0, 5, JoinGroupRequest, JoinGroupResponse),
        Api(ApiKey.HEARTBEAT, 0, 3, HeartbeatRequest, HeartbeatResponse),
        Api(ApiKey.LEAVE_GROUP, 0, 3, LeaveGroupRequest, LeaveGroupResponse),
        Api(ApiKey.SYNC_GROUP, 0, 3, SyncGroupRequest, SyncGroupResponse),
        Api(ApiKey.DESCRIBE_GROUPS, 0, 4, DescribeGroupsRequest, DescribeGroupsResponse),
        Api(ApiKey.LIST_GROUPS, 0, 4, ListGroupsRequest, ListGroupsResponse, flexible_since=3),
        Api(ApiKey.API_VERSIONS, 0, 3, ApiVersionsRequest, ApiVersionsResponse, flexible_since=3),
        Api(ApiKey.CREATE_TOPICS, 2, 4, CreateTopicsRequest, CreateTopicsResponse),
        Api(ApiKey.DELETE_TOPICS, 1, 3, DeleteTopicsRequest, DeleteTopicsResponse),
        Api(ApiKey.INIT_PRODUCER_ID, 0, 1, InitProducerIdRequest, InitProducerIdResponse),
        Api(ApiKey.DESCRIBE_CONFIGS, 1, 2, DescribeConfigsRequest, DescribeConfigsResponse),
    )
}

SERVED_VERSIONS: Final = tuple(
    ApiVersion(api_key=api.key, min_version=api.version_min, max_version=api.version_max) for api in SERVED.values()
)

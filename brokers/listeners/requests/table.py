"""Which function carries out which request; Produce, Fetch and ApiVersions are the connection's own.

A handler takes the service, the client and the request's message. It returns the answer's message, or a coroutine for
it where it has to wait; what follows on the connection then waits too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from brokers.listeners.requests import commit, groups, metadata, topics
from brokers.wire.apis.table import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from brokers.listeners.service import Caller, Service

    Handler = Callable[[Service, Caller, Any], object]

HANDLERS: Final[Mapping[ApiKey, Handler]] = {
    ApiKey.LIST_OFFSETS: metadata.list_offsets,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.INIT_PRODUCER_ID: metadata.init_producer_id,
    ApiKey.OFFSET_COMMIT: commit.commit,
    ApiKey.OFFSET_FETCH: commit.fetch,
    ApiKey.FIND_COORDINATOR: groups.find_coordinator,
    ApiKey.JOIN_GROUP: groups.join,
    ApiKey.SYNC_GROUP: groups.sync,
    ApiKey.HEARTBEAT: groups.heartbeat,
    ApiKey.LEAVE_GROUP: groups.leave,
    ApiKey.DESCRIBE_GROUPS: groups.describe,
    ApiKey.LIST_GROUPS: groups.list_groups,
    ApiKey.CREATE_TOPICS: topics.create,
    ApiKey.DELETE_TOPICS: topics.delete,
    ApiKey.DESCRIBE_CONFIGS: topics.describe_configs,
}

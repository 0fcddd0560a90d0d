"""What may be set of DSBS, from the broker's config file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from coordinators import settings
from coordinators.dsbs.tables.messages import CLUSTER_CHARACTERS_MAX
from coordinators.errors import InvalidRequest

Milliseconds = Annotated[int, settings.whole(1, 3_600_000)]
Count = Annotated[int, settings.whole(1, 1000)]


@dataclass(frozen=True, slots=True)
class Settings:
    """`cluster` names the cluster: brokers of another one are refused. Times are in ms of a monotonic clock.

    A broker that does not answer for `timeout_ms` is suspected; one that does not refute it for `suspicion_ms` is dead.
    One that was away for `doubt_ms` hears from a peer before it leads.
    What groups commit is in this broker's memory, in its journal, or also copied to `offset_copies` others.
    Up to `push_all_max` peers each change and heartbeat goes to all of them, beyond that to `fanout` at random.
    """

    cluster: Annotated[str, settings.text(CLUSTER_CHARACTERS_MAX)] = "brokerlab"
    heartbeat_ms: Milliseconds = 500
    timeout_ms: Milliseconds = 1500
    suspicion_ms: Milliseconds = 1000
    join_ms: Milliseconds = 3000
    acknowledge_ms: Milliseconds = 2000
    copy_ms: Milliseconds = 200
    offset_copies: Count = 2
    doubt_ms: Milliseconds = 500
    offsets: Annotated[
        Literal["journal_copied", "journal", "memory"], settings.word("journal_copied", "journal", "memory")
    ] = "journal_copied"
    delay_us: Annotated[int, settings.DELAY_US] = 0
    push_all_max: Count = 50
    fanout: Count = 4


def parse(options: Mapping[str, object]) -> Settings:
    """Raises `InvalidRequest` with the key, the value and what is allowed."""
    found = settings.read(Settings, options, "coordinator dsbs")
    if found.timeout_ms < 2 * found.heartbeat_ms:
        raise InvalidRequest(
            f"timeout_ms must be at least two heartbeats of {found.heartbeat_ms} ms, not {found.timeout_ms}: "
            "one late answer would make a suspect"
        )
    return found

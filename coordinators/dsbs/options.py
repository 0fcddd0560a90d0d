"""What may be set of DSBS, from the broker's config file. Pure."""

from __future__ import annotations

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from coordinators.dsbs.tables.messages import CLUSTER_CHARACTERS_MAX
from coordinators.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

MILLISECONDS_MAX: Final = 3_600_000
COUNT_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Settings:
    """`cluster` names the cluster: brokers of another one are refused. Times are in ms of a monotonic clock.

    A broker that does not answer for `timeout_ms` is suspected; one that does not refute it for `suspicion_ms` is dead.
    One that was away for `doubt_ms` hears from a peer before it leads.
    Up to `push_all_max` peers each change and heartbeat goes to all of them, beyond that to `fanout` at random.
    """

    cluster: str = "brokerlab"
    heartbeat_ms: int = 500
    timeout_ms: int = 1500
    suspicion_ms: int = 1000
    join_ms: int = 3000
    acknowledge_ms: int = 2000
    copy_ms: int = 200
    offset_copies: int = 2
    doubt_ms: int = 500
    push_all_max: int = 50
    fanout: int = 4


def parse(options: Mapping[str, object]) -> Settings:
    """Raises `InvalidRequest` with the key, the value and what is allowed."""
    known = [field.name for field in fields(Settings)]
    for key, value in options.items():
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise InvalidRequest(f"unknown option {key!r} of coordinator dsbs; {hint}")
        _check(key, value)
    settings = Settings(**options)  # type: ignore[arg-type]
    if settings.timeout_ms < 2 * settings.heartbeat_ms:
        raise InvalidRequest(
            f"timeout_ms must be at least two heartbeats of {settings.heartbeat_ms} ms, not {settings.timeout_ms}: "
            "one late answer would make a suspect"
        )
    return settings


def _check(key: str, value: object) -> None:
    if key == "cluster":
        if not isinstance(value, str) or not 1 <= len(value) <= CLUSTER_CHARACTERS_MAX:
            raise InvalidRequest(f"cluster must be text of 1 to {CLUSTER_CHARACTERS_MAX} characters, not {value!r}")
        return
    most = MILLISECONDS_MAX if key.endswith("_ms") else COUNT_MAX
    if type(value) is not int or not 1 <= value <= most:
        raise InvalidRequest(f"{key} must be a whole number from 1 to {most}, not {value!r}")

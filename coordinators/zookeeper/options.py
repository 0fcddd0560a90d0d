"""The options of the architectures `zookeeper` and `zookeeper-watch`, as a broker's config file has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from coordinators.errors import InvalidRequest
from coordinators.settings import DELAY_US, Allowed, read, whole, word

_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([1-9][0-9]{0,4})")
_CHROOT: Final = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9_.-]+)*")
_AUTH: Final = re.compile(r"[^:]+:.+", re.DOTALL)


def _is_ensemble(value: object) -> bool:
    hosts = [_HOST.fullmatch(host) for host in value.split(",")] if isinstance(value, str) else [None]
    return all(host is not None and int(host[1]) <= 65_535 for host in hosts)


def _shaped(shape: re.Pattern[str], said: str, *, secret: bool = False) -> Allowed:
    return Allowed(said, lambda value: isinstance(value, str) and shape.fullmatch(value) is not None, secret)


@dataclass(frozen=True, slots=True)
class Options:
    """`connect` is an ensemble, `host:port,host:port`. `auth` is `user:password` for ZooKeeper's digest scheme: the
    broker's znodes are then open to that user alone."""

    connect: Annotated[str, Allowed("host:port, or several with commas between", _is_ensemble)]
    chroot: Annotated[str, _shaped(_CHROOT, "a path such as /brokerlab")] = ""
    metadata: Annotated[Literal["lookup", "lookup_each", "watch"], word("lookup", "lookup_each", "watch")] = "lookup"
    offsets: Annotated[
        Literal["zookeeper_each", "zookeeper_interval", "memory"],
        word("zookeeper_each", "zookeeper_interval", "memory"),
    ] = "zookeeper_each"
    offsets_interval_ms: Annotated[int, whole(1, 3_600_000)] = 0  # given if, and only if, offsets is that
    session_timeout_ms: Annotated[int, whole(1_000, 300_000)] = 6_000
    doubt_ms: Annotated[int, whole(20, 60_000)] = 500  # where metadata is "watch"
    delay_us: Annotated[int, DELAY_US] = 0
    auth: Annotated[str | None, _shaped(_AUTH, "user:password", secret=True)] = None


def parse(options: Mapping[str, object]) -> Options:
    """Raises `InvalidRequest`, which names the option, its value and what is allowed."""
    found = read(Options, options, "coordinator zookeeper", required=("connect",))
    if bool(found.offsets_interval_ms) != (found.offsets == "zookeeper_interval"):
        raise InvalidRequest("offsets_interval_ms is given if, and only if, offsets is 'zookeeper_interval'")
    return found

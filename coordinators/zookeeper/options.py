"""The options of the architectures `zookeeper` and `zookeeper-watch`, as a broker's config file has them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, cast

from coordinators.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

Metadata = Literal["lookup", "watch"]
Offsets = Literal["every_commit", "interval"]

SESSION_TIMEOUT_MS: Final = 6_000
SESSION_TIMEOUT_MS_MIN: Final = 1_000
SESSION_TIMEOUT_MS_MAX: Final = 300_000
INTERVAL_MS_MAX: Final = 3_600_000
DOUBT_MS: Final = 500
DOUBT_MS_MIN: Final = 20
DOUBT_MS_MAX: Final = 60_000
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):([1-9][0-9]{0,4})")
_CHROOT: Final = re.compile(r"(/(?!\.{1,2}(/|$))[A-Za-z0-9_.-]+)*")
_AUTH: Final = re.compile(r"[^:]+:.+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Options:
    """`connect` is an ensemble, `host:port,host:port`. `auth` is `user:password` for ZooKeeper's digest scheme: the
    broker's znodes are then open to that user alone."""

    connect: str
    chroot: str = ""
    metadata: Metadata = "lookup"
    offsets: Offsets = "every_commit"
    offsets_interval_ms: int = 0  # positive if, and only if, offsets is "interval"
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    doubt_ms: int = DOUBT_MS  # where metadata is "watch"
    auth: str | None = None


def parse(options: Mapping[str, object]) -> Options:
    """Raises `InvalidRequest`, which names the option, its value and what is allowed."""
    _refuse_unknown(options)
    offsets = _word(options, "offsets", ("every_commit", "interval"))
    if ("offsets_interval_ms" in options) != (offsets == "interval"):
        raise InvalidRequest("offsets_interval_ms is given if, and only if, offsets is 'interval'")
    interval_ms = _number(options, "offsets_interval_ms", 0, 1, INTERVAL_MS_MAX)
    return Options(
        connect=_connect(options.get("connect")),
        chroot=_matching(options, "chroot", "", _CHROOT, "a path such as /brokerlab"),
        metadata=cast("Metadata", _word(options, "metadata", ("lookup", "watch"))),
        offsets=cast("Offsets", offsets),
        offsets_interval_ms=interval_ms,
        session_timeout_ms=_number(
            options, "session_timeout_ms", SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS_MIN, SESSION_TIMEOUT_MS_MAX
        ),
        doubt_ms=_number(options, "doubt_ms", DOUBT_MS, DOUBT_MS_MIN, DOUBT_MS_MAX),
        auth=_matching(options, "auth", "", _AUTH, "user:password") if "auth" in options else None,
    )


def _refuse_unknown(options: Mapping[str, object]) -> None:
    known = Options.__slots__
    for key in options:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
            raise InvalidRequest(f"unknown option {key!r} of coordinator zookeeper; {hint}")


def _connect(value: object) -> str:
    hosts = value.split(",") if isinstance(value, str) else [""]
    for host in hosts:
        found = _HOST.fullmatch(host)
        if found is None or int(found[2]) > 65_535:
            raise InvalidRequest(f"connect must be host:port, or several with commas between, not {value!r}")
    return ",".join(hosts)


def _word(options: Mapping[str, object], key: str, words: tuple[str, ...]) -> str:
    value = options.get(key, words[0])
    if value not in words:
        raise InvalidRequest(f"{key} must be {' or '.join(words)}, not {value!r}")
    return str(value)


def _number(options: Mapping[str, object], key: str, default: int, least: int, most: int) -> int:
    if key not in options:
        return default
    value = options[key]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidRequest(f"{key} must be a whole number from {least} to {most}, not {value!r}")
    return value


def _matching(options: Mapping[str, object], key: str, default: str, shape: re.Pattern[str], said: str) -> str:
    value = options.get(key, default)
    if not isinstance(value, str) or not shape.fullmatch(value):
        # A secret is never quoted: messages end up in logs.
        raise InvalidRequest(f"{key} must be {said}" + ("" if key == "auth" else f", not {value!r}"))
    return value

from __future__ import annotations

import pytest

from coordinators.errors import InvalidRequest
from coordinators.zookeeper.options import Options, parse

CONNECT = {"connect": "localhost:2181"}


def test_what_is_not_given_has_a_default() -> None:
    assert parse(CONNECT) == Options("localhost:2181", "", "lookup", "zookeeper_each", 0, 6_000, 500, 0, None)


def test_all_that_may_be_given() -> None:
    assert parse(
        {
            "connect": "zk-1:2181,10.0.0.2:2182,[::1]:2183",
            "chroot": "/lab/one",
            "metadata": "watch",
            "offsets": "zookeeper_interval",
            "offsets_interval_ms": 500,
            "session_timeout_ms": 9_000,
            "doubt_ms": 40,
            "delay_us": 7,
            "auth": "user:pass:word",
        }
    ) == Options(
        "zk-1:2181,10.0.0.2:2182,[::1]:2183",
        "/lab/one",
        "watch",
        "zookeeper_interval",
        500,
        9_000,
        40,
        7,
        "user:pass:word",
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"connect": None}, "connect in coordinator zookeeper must be"),
        ({"connect": ""}, "connect in coordinator zookeeper must be"),
        ({"connect": "localhost"}, "connect in coordinator zookeeper must be"),
        ({"connect": "localhost:0"}, "connect in coordinator zookeeper must be"),
        ({"connect": "localhost:65536"}, "connect in coordinator zookeeper must be"),
        ({"connect": "a:1,,b:2"}, "connect in coordinator zookeeper must be"),
        ({"connect": "a:1/chroot"}, "connect in coordinator zookeeper must be"),
        ({"connect": ["a:1"]}, "connect in coordinator zookeeper must be"),
        ({"chroot": "/"}, "chroot in coordinator zookeeper must be"),
        ({"chroot": "lab"}, "chroot in coordinator zookeeper must be"),
        ({"chroot": "/lab/"}, "chroot in coordinator zookeeper must be"),
        ({"chroot": "/a/../b"}, "chroot in coordinator zookeeper must be"),
        ({"chroot": "/a//b"}, "chroot in coordinator zookeeper must be"),
        ({"metadata": "cached"}, "metadata in coordinator zookeeper must be one of lookup, lookup_each, watch"),
        (
            {"offsets": "never"},
            "offsets in coordinator zookeeper must be one of zookeeper_each, zookeeper_interval, memory",
        ),
        ({"offsets": "zookeeper_interval"}, "if, and only if"),
        ({"offsets_interval_ms": 100}, "if, and only if"),
        (
            {"offsets": "zookeeper_interval", "offsets_interval_ms": 0},
            "offsets_interval_ms in coordinator zookeeper must be",
        ),
        ({"delay_us": -1}, "delay_us in coordinator zookeeper must be"),
        ({"session_timeout_ms": 999}, "session_timeout_ms in coordinator zookeeper must be"),
        ({"session_timeout_ms": True}, "session_timeout_ms in coordinator zookeeper must be"),
        ({"session_timeout_ms": "6000"}, "session_timeout_ms in coordinator zookeeper must be"),
        ({"auth": "nobody"}, "auth in coordinator zookeeper must be user:password"),
        ({"auth": None}, "auth in coordinator zookeeper must be user:password"),
        ({"metdata": "watch"}, "did you mean 'metadata'"),
        ({"zzz": 1}, "known are connect"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(given: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        parse(CONNECT | given)


def test_a_secret_is_never_quoted() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        parse(CONNECT | {"auth": ":secret"})
    assert "secret" not in str(refusal.value)

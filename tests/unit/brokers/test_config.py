"""A broker's config file: read whole, or refused with the key, the value and what is allowed."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.config import ConfigError, Limits, TopicDefaults, load
from brokers.log.config import FsyncPolicy
from coordinators.model import Broker

GOOD: dict[str, Any] = {
    "broker": 2,
    "brokers": [
        {"id": 1, "host": "127.0.0.1", "kafka_port": 9092, "rpc_port": 9192},
        {"id": 2, "host": "127.0.0.1", "kafka_port": 9093, "rpc_port": 9193},
    ],
    "data_dir": "/data",
    "coordinator": {"name": "static"},
}

INT32 = "a whole number from 1 to 2147483647"
INT64 = "a whole number from 1 to 9223372036854775807"
TEXT = "text of 1 to 1048576 characters, none of them zero"


def loaded(folder: Path, content: bytes | dict[str, Any]) -> Any:
    path = folder / "broker.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return load(path)


def refusal(folder: Path, content: bytes | dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as refused:
        loaded(folder, content)
    text = str(refused.value)
    assert text.startswith(f"{folder / 'broker.json'}: ")
    assert "\n" not in text
    text.encode()  # or it could not be printed
    return text


def test_a_config_is_read_with_its_defaults(tmp_path: Path) -> None:
    config = loaded(tmp_path, GOOD)
    assert config.me == Broker(2, "127.0.0.1", 9093, 9193)
    assert [broker.id for broker in config.brokers] == [1, 2]
    assert (config.coordinator, config.coordinator_options) == ("static", {})
    assert (config.topics, config.limits) == (TopicDefaults(), Limits())
    assert config.log.fsync is FsyncPolicy.NEVER


def test_every_setting_is_taken(tmp_path: Path) -> None:
    given_config = {
        **GOOD,
        "coordinator": {"name": "zookeeper", "connect": "127.0.0.1:2181"},
        "log": {"fsync": "interval", "fsync_interval_ms": 50, "segment_bytes": 4096, "retention_ms": 10**12},
        "topics": {"auto_create": True, "partitions": 4, "replication_factor": 2},
        "limits": {"connections_max": 10, "message_bytes_max": 1000, "request_bytes_max": 2000, "gather_ms": 0},
    }
    config = loaded(tmp_path, given_config)
    assert config.coordinator_options == {"connect": "127.0.0.1:2181"}
    assert (config.log.fsync, config.log.fsync_interval_ms) == (FsyncPolicy.INTERVAL, 50)
    assert (config.log.segment_bytes, config.log.retention_ms) == (4096, 10**12)
    assert config.topics == TopicDefaults(auto_create=True, partitions=4, replication_factor=2)
    assert config.limits == Limits(10, 1000, 2000, gather_ms=0)


def row(**changes: Any) -> dict[str, Any]:
    """GOOD with a change in its first row of brokers."""
    first, second = GOOD["brokers"]
    return {**GOOD, "brokers": [{**first, **changes}, second]}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({**GOOD, "brokr": 1}, "unknown key 'brokr' in the config; did you mean 'broker'?"),
        ({**GOOD, "zzz": 1}, "unknown key 'zzz' in the config; known are broker, brokers, data_dir, coordinator"),
        ({**GOOD, "broker": "2"}, "broker in the config must be a whole number from 0 to 2147483647, not '2'"),
        ({**GOOD, "broker": True}, "broker in the config must be a whole number from 0 to 2147483647, not True"),
        ({**GOOD, "broker": 2.0}, "broker in the config must be a whole number from 0 to 2147483647, not 2.0"),
        ({**GOOD, "broker": 3}, "broker 3 is not among brokers, which has [1, 2]"),
        ({**GOOD, "brokers": []}, "brokers must list 1 to 1000 brokers, not 0"),
        ({**GOOD, "brokers": [1]}, "brokers[0] must be a mapping, not 1"),
        ({**GOOD, "brokers": {}}, "brokers in the config must be a list, not {}"),
        (row(id=2), "broker ids must be different, not [2, 2]"),
        (row(id=-1), "id in brokers[0] must be a whole number from 0 to 2147483647, not -1"),
        (row(kafka_port=0), "kafka_port in brokers[0] must be a whole number from 1 to 65535, not 0"),
        (row(rpc_port=65_536), "rpc_port in brokers[0] must be a whole number from 1 to 65535, not 65536"),
        (row(rpc_port=9092), "ports of one host must be different, and 9092 of 127.0.0.1 stands twice"),
        (row(rpc_port=9093), "ports of one host must be different, and 9093 of 127.0.0.1 stands twice"),
        (row(host=""), f"host in brokers[0] must be {TEXT}, not ''"),
        (row(rack="a"), "unknown key 'rack' in brokers[0]"),
        ({**GOOD, "brokers": [{"id": 1, "host": "x"}]}, "brokers[0] lacks kafka_port, rpc_port"),
        ({key: GOOD[key] for key in ("broker", "brokers")}, "the config lacks data_dir, coordinator"),
        (
            {**GOOD, "data_dir": ""},
            f"data_dir in the config must be {TEXT}, not ''",
        ),
        (
            {**GOOD, "data_dir": "a\0b"},
            f"data_dir in the config must be {TEXT}, not",
        ),
        ({**GOOD, "coordinator": {}}, 'coordinator needs a name, as in {"name": "static"}'),
        ({**GOOD, "coordinator": "static"}, "coordinator in the config must be a mapping, not 'static'"),
        (
            {**GOOD, "log": {"fsync": "sometimes"}},
            "fsync in log must be one of never, interval, always, not 'sometimes'",
        ),
        ({**GOOD, "log": {"fsync": 1}}, "fsync in log must be one of never, interval, always, not 1"),
        ({**GOOD, "log": {"fsync": ["never"]}}, "fsync in log must be one of never, interval, always, not ['never']"),
        (
            {**GOOD, "log": {"segment_bytes": 0}},
            f"segment_bytes in log must be {INT64}, not 0",
        ),
        (
            {**GOOD, "log": {"retention_ms": -1}},
            f"retention_ms in log must be {INT64}, not -1",
        ),
        (
            {**GOOD, "log": {"segment_bytes": 1e9}},
            f"segment_bytes in log must be {INT64}, not 1000000000.0",
        ),
        ({**GOOD, "log": {"segmentbytes": 1}}, "unknown key 'segmentbytes' in log; did you mean 'segment_bytes'?"),
        (
            {**GOOD, "limits": {"message_bytes_max": 2**31}},
            f"message_bytes_max in limits must be {INT32}",
        ),
        (
            {**GOOD, "limits": {"connections_max": None}},
            f"connections_max in limits must be {INT32}, not None",
        ),
        ({**GOOD, "topics": {"auto_create": 1}}, "auto_create in topics must be true or false, not 1"),
        ({**GOOD, "data_dir": "/a\ud800"}, r"data_dir holds half a character (a lone surrogate): '/a\ud800'"),
        (row(host="\udfff"), r"brokers[0].host holds half a character (a lone surrogate): '\udfff'"),
        ({**GOOD, "coordinator": {"name": "\udabc"}}, "coordinator.name holds half a character"),
        ({**GOOD, "coordinator": {"name": "x", "list": ["a", {"b": "\ud800"}]}}, "coordinator.list[1].b holds half"),
        ({**GOOD, "log": {"\ud800": 1}}, r"a key in log holds half a character (a lone surrogate): '\ud800'"),
        ({**GOOD, "\ud800": 1}, "a key holds half a character"),
        (b'"\\ud800"', "the config holds half a character"),
        (b'{"\\ud800": 1, "\\ud800": 2}', "not JSON: key '\\ud800' stands twice"),
        (b"", "not JSON"),
        (b"[]", "the config must be a mapping, not []"),
        (b"null", "the config must be a mapping, not None"),
        (b'{"broker": 1', "not JSON"),
        (b'{"broker": 1, "broker": 2}', "not JSON: key 'broker' stands twice"),
        (b'{"log": {"fsync": "never", "fsync": "always"}}', "not JSON: key 'fsync' stands twice"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b" " * (1024 * 1024 + 1), "larger than 1048576 bytes"),
    ],
)
def test_what_is_wrong_is_refused_with_what_is_allowed(
    tmp_path: Path, content: bytes | dict[str, Any], complaint: str
) -> None:
    assert complaint in refusal(tmp_path, content)


def test_a_file_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json: No such file or directory"):
        load(tmp_path / "gone.json")
    with pytest.raises(ConfigError, match="Is a directory"):
        load(tmp_path)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(list(GOOD)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from([*GOOD, "log", "topics", "limits"]), values)
def test_no_value_of_any_key_does_more_than_be_refused(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any
) -> None:
    with suppress(ConfigError):
        loaded(tmp_path_factory.mktemp("config"), {**GOOD, key: value})

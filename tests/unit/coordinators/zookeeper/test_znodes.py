from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinators.errors import Unreadable
from coordinators.model import Broker, Committed, Partition, TopicPartition, TopicSettings
from coordinators.zookeeper import znodes
from coordinators.zookeeper.znodes import Place, StoredTopic, Tree, Where

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/somewhere"
STATE = {"version": 1, "leader": 2, "leader_epoch": 4, "isr": [2, 3], "replicas": [1, 2, 3]}
TOPIC = {
    "version": 1,
    "partitions": {"0": [1, 2], "1": [2, 1]},
    "settings": {"fetch_records_max": 0, "retention_bytes": None, "retention_ms": None},
}
BROKER = {"version": 1, "host": "h", "port": 9092, "rpc_port": 9093}
COMMITTED = {"version": 1, "offset": 7, "leader_epoch": -1, "metadata": ""}


def packed(value: object) -> bytes:
    return json.dumps(value).encode()


def test_what_is_written_is_read_again() -> None:
    broker = Broker(7, "some.host", 9092, 9093)
    partitions = (Partition((1, 2), 1, 0, (1, 2)), Partition((2, 3), 3, 5, (3,)), Partition((1, 3), -1, 6, ()))
    settings = TopicSettings(20, 1_000, -1, 2)
    place = Committed(2**63 - 1, 3, "a note")
    assert znodes.decode_broker(PATH, znodes.encode_broker(broker), "7") == broker
    assert znodes.decode_topic(PATH, znodes.encode_topic(partitions, settings)) == StoredTopic(
        ((1, 2), (2, 3), (1, 3)), settings
    )
    assert [znodes.decode_state(PATH, znodes.encode_state(partition)) for partition in partitions] == list(partitions)
    assert znodes.decode_committed(PATH, znodes.encode_committed(place)) == place
    assert znodes.decode_controller(PATH, znodes.encode_controller(3)) == 3
    assert znodes.decode_number(PATH, znodes.encode_number(41)) == 41
    assert znodes.decode_cluster_id(PATH, znodes.encode_cluster_id("abc")) == "abc"


NOT_AN_OBJECT = [
    (b"", "not JSON"),
    (b"\xff\xfe", "not JSON"),
    (b"no JSON", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b'{"version":1,"version":1}', "stands twice"),
    (b"[1]", "must hold an object"),
    (b"null", "must hold an object"),
    (b'{"version":NaN}', "version must be"),
    (b"{}", "version is missing"),
    (b'{"version":2}', "version must be"),
    (b'{"version":true}', "version must be"),
    (b'{"version":"1"}', "version must be"),
    (b"1" * 5_000, "not JSON"),
    (b" " * 1_000_001, "1000001 bytes"),
]


@pytest.mark.parametrize(("data", "reason"), NOT_AN_OBJECT, ids=[str(row) for row in range(len(NOT_AN_OBJECT))])
def test_what_is_no_object_of_the_known_version_is_refused_with_its_path(data: bytes, reason: str) -> None:
    for decode in (znodes.decode_state, znodes.decode_topic, znodes.decode_committed, znodes.decode_cluster_id):
        with pytest.raises(Unreadable, match=f"{PATH}.*{reason}"):
            decode(PATH, data)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"leader": 1}, "leader must be one of isr"),
        ({"leader": -2}, "leader must be a whole number"),
        ({"leader": "2"}, "leader must be a whole number"),
        ({"leader": 2.0}, "leader must be a whole number"),
        ({"leader_epoch": -1}, "leader_epoch must be"),
        ({"leader_epoch": 2**31}, "leader_epoch must be"),
        ({"leader_epoch": None}, "leader_epoch must be"),
        ({"isr": []}, "leader must be one of isr"),
        ({"isr": [2, 4]}, "isr must be some of the replicas"),
        ({"isr": [3, 2]}, "in their order"),
        ({"isr": [2, 2]}, "once"),
        ({"isr": {"2": 1}}, "isr must list"),
        ({"replicas": [1, True, 3]}, "replicas must be a whole number"),
        ({"replicas": [1, -2, 3]}, "replicas must be a whole number"),
        ({"more": 1}, "holds more"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(Unreadable, match=f"{PATH}.*{reason}"):
        znodes.decode_state(PATH, packed(STATE | change))


@pytest.mark.parametrize("key", STATE)
def test_a_state_without_one_of_its_keys_is_refused(key: str) -> None:
    with pytest.raises(Unreadable, match=f"{key} is missing"):
        znodes.decode_state(PATH, packed({name: value for name, value in STATE.items() if name != key}))


@pytest.mark.parametrize(
    "change",
    [
        {"partitions": {}},
        {"partitions": {"1": [1]}},
        {"partitions": {"0": [1], "00": [1]}},
        {"partitions": [[1]]},
        {"partitions": {"0": []}},
        {"partitions": {str(number): [1] for number in range(10_001)}},
        {"settings": {}},
        {"settings": {**TOPIC["settings"], "more": 1}},  # type: ignore[dict-item]
        {"settings": {**TOPIC["settings"], "retention_ms": "1"}},  # type: ignore[dict-item]
    ],
)
def test_a_topic_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    assert znodes.decode_topic(PATH, packed(TOPIC))
    with pytest.raises(Unreadable, match=PATH):
        znodes.decode_topic(PATH, packed(TOPIC | change))


@pytest.mark.parametrize(
    ("change", "name"),
    [({"port": 0}, "1"), ({"port": 65_536}, "1"), ({"host": ""}, "1"), ({}, "x"), ({}, "01"), ({}, "-1"), ({}, "²")],
)
def test_a_registration_that_makes_no_sense_is_refused(change: dict[str, object], name: str) -> None:
    with pytest.raises(Unreadable, match=PATH):
        znodes.decode_broker(PATH, packed(BROKER | change), name)


@pytest.mark.parametrize(
    "change", [{"offset": -1}, {"offset": 2**63}, {"offset": 1.5}, {"metadata": None}, {"metadata": "x" * 4097}]
)
def test_an_offset_that_makes_no_sense_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(Unreadable, match=PATH):
        znodes.decode_committed(PATH, packed(COMMITTED | change))


@pytest.mark.parametrize("data", [b"", b"-1", b"1.0", b" 1", b"9999999999", b"9" * 5_000, b"x"])
def test_a_number_that_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable, match=PATH):
        znodes.decode_number(PATH, data)


def fault_of(decode: Callable[[str, bytes], object], data: bytes) -> str | None:
    try:
        decode(PATH, data)
    except Unreadable as fault:
        return str(fault)
    return None


@given(st.binary(max_size=200))
def test_no_bytes_are_answered_with_anything_but_a_value_or_an_error_with_the_path(data: bytes) -> None:
    for decode in (znodes.decode_state, znodes.decode_topic, znodes.decode_committed, znodes.decode_number):
        fault = fault_of(decode, data)
        assert fault is None or PATH in fault


@given(st.text(min_size=1))
def test_any_group_has_a_znode_name_of_its_own(group: str) -> None:
    encoded = znodes.encode_name(group)
    assert znodes.decode_name(encoded) == group
    assert "/" not in encoded
    assert encoded not in {"", ".", ".."}


def test_the_tree_is_kafkas() -> None:
    tree, at = Tree("/lab"), TopicPartition("orders", 3)
    assert tree.broker(1) == "/lab/brokers/ids/1"
    assert tree.topic("orders") == "/lab/brokers/topics/orders"
    assert tree.state(at) == "/lab/brokers/topics/orders/partitions/3/state"
    assert tree.offset("readers", at) == "/lab/consumers/readers/offsets/orders/3"
    assert (tree.controller, tree.controller_epoch) == ("/lab/controller", "/lab/controller_epoch")


def test_folders_come_parents_first() -> None:
    assert list(Tree("/a/b").folders) == [
        "/a",
        "/a/b",
        "/a/b/brokers",
        "/a/b/brokers/ids",
        "/a/b/brokers/topics",
        "/a/b/consumers",
        "/a/b/cluster",
    ]
    assert Tree("").folders[0] == "/brokers"


@pytest.mark.parametrize("chroot", ["", "/a/b"])
def test_a_changed_znode_is_known_by_its_path(chroot: str) -> None:
    tree, at = Tree(chroot), TopicPartition("orders", 3)
    assert tree.where(tree.brokers) == Where(Place.BROKERS)
    assert tree.where(tree.topics) == Where(Place.TOPICS)
    assert tree.where(tree.topic("orders")) == Where(Place.TOPIC, TopicPartition("orders", -1))
    assert tree.where(tree.state(at)) == Where(Place.STATE, at)
    assert tree.where(tree.controller) == Where(Place.CONTROLLER)
    for path in (tree.consumers, tree.partition(at), tree.partitions("orders"), f"{tree.partitions('t')}/x/state"):
        assert tree.where(path) is None

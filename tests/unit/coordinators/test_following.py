"""What a broker's store makes of the views that its coordinator hands it: above all, what it does not delete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from brokers.log.config import LogConfig
from brokers.log.errors import LogDiskFailed
from brokers.store import HeldPartition, Store
from brokers.wire.batch import RecordToSend, encode_batch, parse_header
from coordinators.model import Broker, ClusterView, Topic
from coordinators.placement import place

ME = Broker(1, "127.0.0.1", 9001, 9501)
OTHER = Broker(2, "127.0.0.1", 9002, 9502)
TOPICS = {name: Topic(name, place(name, 1, 1, [1])) for name in ("clicks", "orders")}
FULL = ClusterView(1, MappingProxyType({1: ME, 2: OTHER}), MappingProxyType(TOPICS))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path, LogConfig(), ME.id)
    made.follow(FULL)
    return made


def held(store: Store) -> set[str]:
    return {partition.at.topic for partition in store.partitions}


def test_a_topic_that_was_deleted_is_deleted_here(store: Store, tmp_path: Path) -> None:
    store.follow(replace(FULL, topics=MappingProxyType({"orders": TOPICS["orders"]})))
    assert held(store) == {"orders"}
    assert [path.name for path in (tmp_path / "topics").iterdir()] == ["orders-0"]


def test_the_last_topic_can_be_deleted(store: Store) -> None:
    store.follow(replace(FULL, topics=MappingProxyType({})))
    assert held(store) == set()


@pytest.mark.parametrize("brokers", [{}, {2: OTHER}])
def test_a_view_without_this_broker_deletes_nothing(store: Store, brokers: dict[int, Broker]) -> None:
    store.follow(replace(FULL, brokers=MappingProxyType(brokers), topics=MappingProxyType({})))
    assert held(store) == {"clicks", "orders"}


def test_what_was_deleted_meanwhile_is_deleted_when_this_broker_is_there_again(store: Store) -> None:
    without = MappingProxyType({"orders": TOPICS["orders"]})
    store.follow(replace(FULL, brokers=MappingProxyType({2: OTHER}), topics=without))
    store.follow(replace(FULL, topics=without))
    assert held(store) == {"orders"}


def again(life: str, topics: dict[str, Topic] = TOPICS) -> ClusterView:
    """The same, but for `orders`, which was deleted and made again."""
    return replace(FULL, topics=MappingProxyType({**topics, "orders": replace(topics["orders"], life=life)}))


def orders(store: Store) -> HeldPartition:
    found = store.partition("orders", 0)
    assert found is not None
    return found


def write(partition: HeldPartition, value: bytes) -> None:
    batch = bytearray(encode_batch([RecordToSend(value)]))
    partition.append([(batch, parse_header(batch))], 0)


def test_a_topic_that_was_deleted_and_made_again_begins_empty_though_no_view_was_without_it(store: Store) -> None:
    former = orders(store)
    write(former, b"old")
    store.follow(again("2"))
    assert former.deleted
    assert orders(store).end_offset == 0
    assert store.partition("clicks", 0) is not None


def test_a_view_without_this_broker_makes_nothing_anew(store: Store) -> None:
    write(orders(store), b"old")
    store.follow(replace(again("2"), brokers=MappingProxyType({2: OTHER})))
    assert orders(store).end_offset == 1


def test_what_was_made_again_while_this_broker_was_away_begins_empty_and_the_old_is_set_aside(tmp_path: Path) -> None:
    for life in ("1", "2", "3"):
        away = Store(tmp_path, LogConfig(), ME.id)
        away.follow(again(life))
        assert orders(away).end_offset == 0
        write(orders(away), life.encode())
        away.close()
    aside = sorted((tmp_path / "former-topics").iterdir())
    assert [path.name for path in aside] == ["orders-0@1", "orders-0@2"]
    assert [life.encode() in next(path.glob("*.log")).read_bytes() for life, path in zip("12", aside, strict=True)]


def test_a_topic_that_is_the_same_goes_on_after_a_restart(tmp_path: Path) -> None:
    for end in range(3):
        store = Store(tmp_path, LogConfig(), ME.id)
        store.follow(again("5"))
        assert orders(store).end_offset == end
        write(orders(store), b"more")
        store.close()
    assert not (tmp_path / "former-topics").exists()


def test_a_folder_that_does_not_say_whose_it_is_is_taken_over(tmp_path: Path) -> None:
    first = Store(tmp_path, LogConfig(), ME.id)
    first.follow(again("5"))
    write(orders(first), b"kept")
    first.close()
    (tmp_path / "topics" / "orders-0" / "life").unlink()
    second = Store(tmp_path, LogConfig(), ME.id)
    second.follow(again("6"))
    assert orders(second).end_offset == 1
    assert (tmp_path / "topics" / "orders-0" / "life").read_text() == "6"


def test_a_request_comes_to_the_life_that_the_newest_view_has(tmp_path: Path) -> None:
    views = [again("1")]
    store = Store(tmp_path, LogConfig(), ME.id, lambda: views[-1])
    write(orders(store), b"old")
    views.append(again("2"))
    assert orders(store).end_offset == 0


def test_a_topic_that_cannot_be_opened_keeps_no_other_from_being_used(tmp_path: Path) -> None:
    views = [again("1", {"orders": TOPICS["orders"]})]
    store = Store(tmp_path, LogConfig(), ME.id, lambda: views[-1])
    write(orders(store), b"here")
    (tmp_path / "topics" / "clicks-0").write_text("in the way")
    views.append(again("1"))
    assert orders(store).end_offset == 1
    with pytest.raises(LogDiskFailed):
        store.follow(views[-1])
    assert orders(store).end_offset == 1

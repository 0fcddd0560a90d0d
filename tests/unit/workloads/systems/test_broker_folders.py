"""Where brokers are and what they are told: ports of the life before, places by number, a config file for each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from brokers.config import load
from workloads.spec.settings import Architecture, ClusterSettings
from workloads.systems import broker_folders
from workloads.systems.api import SystemSetup
from workloads.systems.broker_folders import PORTS, Place

SETTINGS = ClusterSettings(
    brokers=2, partitions=3, replication_factor=1, acks=1, fsync="interval", fsync_interval_ms=50
)


def places(folder: Path) -> list[Place]:
    setup = SystemSetup(Architecture("it", "static"), SETTINGS, folder, folder / "logs")
    return broker_folders.places(setup, folder, [11, 12, 13, 14])


def test_each_broker_has_two_of_the_ports_a_folder_and_a_log(tmp_path: Path) -> None:
    assert places(tmp_path) == [
        Place(1, "127.0.0.1", 11, 12, tmp_path / "broker-1", tmp_path / "logs" / "broker-1.log"),
        Place(2, "127.0.0.1", 13, 14, tmp_path / "broker-2", tmp_path / "logs" / "broker-2.log"),
    ]


def test_a_broker_is_told_who_it_is_who_the_others_are_and_what_is_held_equal(tmp_path: Path) -> None:
    everyone = places(tmp_path)
    file = tmp_path / "broker-2.json"
    file.write_text(json.dumps(broker_folders.config(everyone[1], everyone, SETTINGS, {"name": "static"})))
    found = load(file)
    assert found.me.id == 2
    assert [(peer.id, peer.host, peer.kafka_port, peer.rpc_port) for peer in found.brokers] == [
        (1, "127.0.0.1", 11, 12), (2, "127.0.0.1", 13, 14)
    ]  # fmt: skip
    assert found.data_dir == tmp_path / "broker-2"
    assert (found.log.fsync, found.log.fsync_interval_ms) == ("interval", 50)


def test_an_interval_that_is_not_asked_for_is_not_told(tmp_path: Path) -> None:
    (one, two), never = places(tmp_path), replace(SETTINGS, fsync="never", fsync_interval_ms=None)
    assert broker_folders.config(one, [one, two], never, {})["log"] == {"fsync": "never"}


def test_ports_are_those_of_the_life_before_where_it_is_kept(tmp_path: Path) -> None:
    first = broker_folders.ports(tmp_path, 3, keep=True, fresh=False)
    assert len(set(first)) == 3
    assert broker_folders.ports(tmp_path, 3, keep=True, fresh=False) == first
    assert json.loads((tmp_path / PORTS).read_text()) == first


def test_fresh_ports_are_others_and_the_next_life_has_them(tmp_path: Path) -> None:
    (tmp_path / PORTS).write_text("[1, 2, 3]")  # nobody gives these out
    fresh = broker_folders.ports(tmp_path, 3, keep=True, fresh=True)
    assert {1, 2, 3}.isdisjoint(fresh)
    assert broker_folders.ports(tmp_path, 3, keep=True, fresh=False) == fresh


def test_a_cluster_that_is_not_kept_writes_no_ports_down_and_reads_none(tmp_path: Path) -> None:
    (tmp_path / PORTS).write_text("[1, 2, 3]")
    assert broker_folders.ports(tmp_path, 3, keep=False, fresh=False) != [1, 2, 3]
    assert (tmp_path / PORTS).read_text() == "[1, 2, 3]"

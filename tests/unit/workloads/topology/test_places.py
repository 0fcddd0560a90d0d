"""Places: who is how far from whom."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from workloads.spec.keys import BROKERS_MAX, CLIENTS_MAX
from workloads.spec.settings import Rtt
from workloads.topology.places import PREFIX_BITS, Place, place_names, placed, rtt_ms

RTT = Rtt(broker_zookeeper=5, broker_broker=1, client_broker=0.2)


def test_every_process_of_a_cluster_has_a_place() -> None:
    assert place_names(brokers=2, producers=1, consumers=2) == [
        "runner", "zookeeper", "broker-1", "broker-2", "producer-0", "consumer-0", "consumer-1",
    ]  # fmt: skip


def test_the_largest_cluster_has_addresses_of_its_own_in_one_network() -> None:
    places = placed(place_names(BROKERS_MAX, CLIENTS_MAX, CLIENTS_MAX), Rtt())
    network = IPv4Network(f"{places[0].address}/{PREFIX_BITS}", strict=False)
    addresses = {IPv4Address(place.address) for place in places}
    assert len(addresses) == len(places)
    assert all(address in network for address in addresses)
    assert network.subnet_of(IPv4Network("198.18.0.0/15")), "the block that is set aside for such measurements"


@pytest.mark.parametrize(
    ("one", "other", "ms"),
    [
        ("broker-1", "zookeeper", 5),
        ("broker-1", "broker-12", 1),
        ("producer-0", "broker-2", 0.2),
        ("consumer-0", "broker-2", 0.2),
        ("producer-0", "consumer-0", 0),
        ("producer-0", "zookeeper", 0),
        ("runner", "broker-1", 0),
        ("runner", "zookeeper", 0),
    ],
)
def test_the_way_between_two_is_as_long_as_their_pair_says_in_both_directions(one: str, other: str, ms: float) -> None:
    assert rtt_ms(one, other, RTT) == rtt_ms(other, one, RTT) == ms


def test_half_a_round_trip_lies_each_way_and_who_is_near_is_not_listed() -> None:
    zookeeper, first, second = placed(["zookeeper", "broker-1", "broker-2"], Rtt(broker_zookeeper=0.2))
    assert zookeeper.far == {first.address: 100_000, second.address: 100_000}
    assert first == Place("broker-1", first.address, {zookeeper.address: 100_000})


@pytest.mark.parametrize(("rtt", "text"), [(Rtt(), "0"), (Rtt(0.2, 0, 1), "broker_zookeeper_0.2+client_broker_1")])
def test_round_trips_have_one_text_of_letters_that_file_names_take(rtt: Rtt, text: str) -> None:
    assert rtt.as_text() == text

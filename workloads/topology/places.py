"""Places and distances: the addresses of a topology's places, and the delay between any two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workloads.spec.settings import Rtt

RUNNER: Final = "runner"
ZOOKEEPER: Final = "zookeeper"
PREFIX_BITS: Final = 16
# From the block that is set aside for measuring networks (RFC 2544): nobody's own network has it.
_ADDRESS: Final = "198.18.{high}.{low}"


@dataclass(frozen=True, slots=True)
class Place:
    """One end of links: the network that one process has to itself."""

    name: str
    address: str
    far: Mapping[str, int]  # address of a peer behind a delay -> nanoseconds one way


def place_names(brokers: int, producers: int, consumers: int) -> list[str]:
    """Every place that a cluster's life needs."""
    return [
        RUNNER,
        ZOOKEEPER,
        *(f"broker-{number}" for number in range(1, brokers + 1)),
        *(f"producer-{number}" for number in range(producers)),
        *(f"consumer-{number}" for number in range(consumers)),
    ]


def placed(names: Sequence[str], rtt: Rtt) -> list[Place]:
    """The places by these names, each with an address and what lies between it and the others."""
    addresses = {name: _ADDRESS.format(high=n // 256, low=n % 256) for n, name in enumerate(names, start=1)}
    return [Place(name, address, _far(name, addresses, rtt)) for name, address in addresses.items()]


def _far(name: str, addresses: Mapping[str, str], rtt: Rtt) -> dict[str, int]:
    one_way_ns = {peer: round(rtt_ms(name, peer, rtt) * 1e6 / 2) for peer in addresses if peer != name}
    return {addresses[peer]: ns for peer, ns in one_way_ns.items() if ns}


def rtt_ms(one: str, other: str, rtt: Rtt) -> float:
    """The round trip between two places; 0 for those that no pair names, such as the runner and anybody."""
    ends = {_role(one), _role(other)}
    if ends == {"broker"}:
        return rtt.broker_broker
    if ends == {"broker", "zookeeper"}:
        return rtt.broker_zookeeper
    if ends == {"client", "broker"}:
        return rtt.client_broker
    return 0.0


def _role(name: str) -> str:
    word = name.partition("-")[0]
    return "client" if word in {"producer", "consumer"} else word

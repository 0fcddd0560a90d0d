"""Which cluster the console talks to, and that somebody answers there."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from workloads.errors import BrokerlabError, UserError
from workloads.playground.playground import Playground

if TYPE_CHECKING:
    from collections.abc import Sequence

    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka.admin import BrokerMetadata, ClusterMetadata, TopicMetadata  # type: ignore[attr-defined]

CONNECT_WITHIN_S: Final = 5.0
ANSWER_WITHIN_S: Final = 10.0
PORT_MAX: Final = 65_535
NAME_CHARS_MAX: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


class ClusterRefused(BrokerlabError):
    """The cluster answered that it does not do what was asked, or broke off; the message says what and why."""


class NoAnswer(UserError):
    """Nobody answers at the addresses, or not as a Kafka broker does."""


class UnknownTopic(UserError):
    """The cluster has no such topic."""


class Cluster:
    """A Kafka-compatible cluster by the addresses of some of its brokers. Raises `UserError` for what is no address."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self.bootstrap = ",".join(addresses)
        self._addresses = [_host_and_port(address) for address in addresses]

    def config(self, **settings: Any) -> dict[str, Any]:
        """Settings of a client of it. librdkafka's own log is off: what goes wrong is said in one line of ours."""
        return {"bootstrap.servers": self.bootstrap, "log_level": 0, **settings}

    def admin(self) -> AdminClient:
        return AdminClient(self.config())

    def metadata(self, client: AdminClient | Consumer | None = None) -> ClusterMetadata:
        """All brokers and topics, as the first that answers knows them; `client` knows the brokers then. Raises
        `NoAnswer`."""
        self._require_listener()
        try:
            return (client or self.admin()).list_topics(timeout=ANSWER_WITHIN_S)
        except KafkaException as error:
            raise NoAnswer(f"{self.bootstrap} does not answer as a Kafka broker: {said(error)}") from error

    def brokers(self) -> dict[int, Cluster]:
        """Broker id -> a cluster that is this broker alone."""
        found = self.metadata().brokers or {}
        return {number: Cluster([_address(broker)]) for number, broker in sorted(found.items())}

    def topic(self, name: str) -> TopicMetadata:
        """Raises `UnknownTopic`, `NoAnswer`, and `UserError` for what cannot be a topic's name."""
        check_name(name)
        found = self.metadata().topics or {}
        if name not in found:
            raise UnknownTopic(f"no topic {name!r} at {self.bootstrap}; `brokerlab topic create {name}` makes it")
        return found[name]

    def _require_listener(self) -> None:
        """A client library goes on trying for as long as it is let; a closed port can be told at once."""
        reasons = []
        for host, port in self._addresses:
            try:
                socket.create_connection((host, port), CONNECT_WITHIN_S).close()
            except OSError as error:
                reasons.append(f"{host}:{port}: {error.strerror or error}")
            else:
                return
        raise NoAnswer(f"no broker answers at {'; '.join(reasons)}")


def chosen(bootstrap: str | None) -> Cluster:
    """The cluster that was named, else the playground's of this directory. Raises `UserError` where there is none."""
    if bootstrap is not None:
        return Cluster(bootstrap.split(","))
    found = Playground(Path()).status()
    if found is None:
        raise UserError(
            "which cluster? Say --bootstrap HOST:PORT, or start one in this directory with `brokerlab cluster up`"
        )
    return Cluster(found.bootstrap)


def check_name(name: str) -> None:
    """Raises `UserError` for what no Kafka cluster takes as a topic's name."""
    if not _NAME.fullmatch(name) or name in {".", ".."} or len(name) > NAME_CHARS_MAX:
        raise UserError(
            f"{name!r} cannot be a topic's name: 1 to {NAME_CHARS_MAX} letters, digits, dots, underscores and hyphens"
        )


def said(error: KafkaException) -> str:
    """An error of the client library in words."""
    found: KafkaError = error.args[0]
    return found.str()


def _address(broker: BrokerMetadata) -> str:
    host = str(broker.host)
    return f"[{host}]:{broker.port}" if ":" in host else f"{host}:{broker.port}"


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.strip().rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= PORT_MAX:
        raise UserError(f"--bootstrap must be HOST:PORT or several with commas between, not {address!r}")
    return host.strip("[]"), int(port)

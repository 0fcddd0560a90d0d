"""Topics made, listed, described and deleted through Kafka's admin API."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec  # type: ignore[attr-defined]

from workloads.console.connection import ANSWER_WITHIN_S, ClusterRefused, NoAnswer, UnknownTopic, check_name, said
from workloads.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka.admin import PartitionMetadata, TopicMetadata  # type: ignore[attr-defined]

    from workloads.console.connection import Cluster

BROKER_DECIDES: Final = -1
CHANGED_WITHIN_S: Final = 30.0  # brokers that ask each other give up before
KNOWN_WITHIN_S: Final = 5.0
KNOWN_POLL_S: Final = 0.02

# Errors that another request avoids.
_WRONGLY_ASKED: Final = frozenset(
    {KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.INVALID_CONFIG}
)


class TopicExists(UserError):
    """There is one of that name already."""


class WronglyAsked(UserError):
    """No broker made the topic, because of what it was to be."""


@dataclass(frozen=True, slots=True)
class TopicRow:
    name: str
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    partition: int
    leader: int
    replicas: Sequence[int]
    in_sync: Sequence[int]
    start_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class Description:
    name: str
    partitions: Sequence[PartitionRow]
    config: Mapping[str, str]  # what differs from the defaults


def create(cluster: Cluster, name: str, partitions: int, replication_factor: int, config: Mapping[str, str]) -> None:
    """Make a topic, and return when every broker knows it. Raises `TopicExists`, `WronglyAsked`,
    `ClusterRefused`, `NoAnswer`."""
    check_name(name)
    topic = NewTopic(name, partitions, replication_factor, config=dict(config))
    brokers, admin = cluster.brokers(), cluster.admin()
    try:
        _changed(admin.create_topics([topic]))
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            raise TopicExists(said(error)) from error
        raise (WronglyAsked if code in _WRONGLY_ASKED else ClusterRefused)(said(error)) from error
    for broker in brokers.values():
        _heard(broker, name, there=True)


def delete(cluster: Cluster, name: str) -> None:
    """Delete a topic, and return when no broker knows it. Raises `UnknownTopic`, `ClusterRefused`, `NoAnswer`."""
    check_name(name)
    brokers, admin = cluster.brokers(), cluster.admin()
    try:
        _changed(admin.delete_topics([name]))
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise UnknownTopic(f"no topic {name!r} at {cluster.bootstrap}") from error
        raise ClusterRefused(f"topic {name!r}: {said(error)}") from error
    for broker in brokers.values():
        _heard(broker, name, there=False)


def list_all(cluster: Cluster) -> list[TopicRow]:
    topics: Mapping[str, TopicMetadata] = cluster.metadata().topics
    return [
        TopicRow(
            name, len(topic.partitions), max((len(part.replicas) for part in topic.partitions.values()), default=0)
        )
        for name, topic in sorted(topics.items())
    ]


def describe(cluster: Cluster, name: str) -> Description:
    """Raises `UnknownTopic`, `ClusterRefused` where offsets or configuration cannot be had, `NoAnswer`."""
    found = cluster.topic(name)
    admin = cluster.admin()
    places = [TopicPartition(name, number) for number in sorted(found.partitions)]
    starts = _offsets(admin, places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
    ends = _offsets(admin, places, OffsetSpec.latest())  # type: ignore[no-untyped-call]
    rows = [_row(part, starts[number], ends[number]) for number, part in sorted(found.partitions.items())]
    return Description(name, rows, _config(admin, name))


def end_offsets(cluster: Cluster, name: str) -> dict[int, int]:
    """Partition -> offset behind its last message. Raises `UnknownTopic`, `ClusterRefused`, `NoAnswer`."""
    places = [TopicPartition(name, number) for number in sorted(cluster.topic(name).partitions)]
    return _offsets(cluster.admin(), places, OffsetSpec.latest())  # type: ignore[no-untyped-call]


def _row(part: PartitionMetadata, start: int, end: int) -> PartitionRow:
    return PartitionRow(part.id, part.leader, part.replicas, part.isrs, start, end)


def _offsets(admin: AdminClient, places: Sequence[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
    asked = admin.list_offsets(dict.fromkeys(places, spec), request_timeout=ANSWER_WITHIN_S)
    return {place.partition: _answer(future, place.topic).offset for place, future in asked.items()}


def _config(admin: AdminClient, name: str) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    asked = admin.describe_configs([resource], request_timeout=ANSWER_WITHIN_S)
    entries = _answer(asked[resource], name)
    return {key: entry.value for key, entry in sorted(entries.items()) if not entry.is_default}


def _answer(future: Future[Any], name: str) -> Any:
    try:
        return future.result()
    except KafkaException as error:
        raise ClusterRefused(f"topic {name!r}: {said(error)}") from error


def _changed(futures: Mapping[str, Future[None]]) -> None:
    """Wait for a change of one topic. Raises `KafkaException`, `NoAnswer`."""
    (future,) = futures.values()
    try:
        future.result(CHANGED_WITHIN_S)
    except TimeoutError:
        raise NoAnswer(f"no answer within {CHANGED_WITHIN_S:.0f} s") from None


def _heard(broker: Cluster, name: str, *, there: bool) -> None:
    """Wait until a broker has heard that there is such a topic, or none: word takes a moment."""
    deadline = monotonic() + KNOWN_WITHIN_S
    while (name in broker.metadata().topics) is not there:
        if monotonic() > deadline:
            change, knows = ("made", "does not know it") if there else ("deleted", "still knows it")
            raise ClusterRefused(
                f"topic {name!r} was {change}, but {broker.bootstrap} {knows} after {KNOWN_WITHIN_S:.0f} s"
            )
        sleep(KNOWN_POLL_S)

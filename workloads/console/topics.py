"""Topics made, listed, described and deleted through Kafka's admin API.

A cluster whose brokers tell each other nothing (`static`) has to be told at each broker; in any other the first one
tells the rest, which then say that it is so already. So a change is asked of every broker, and has failed only where
none took it.
"""

from __future__ import annotations

from collections.abc import Callable
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

    from confluent_kafka.admin._metadata import PartitionMetadata, TopicMetadata

    from workloads.console.connection import Cluster

BROKER_DECIDES: Final = -1
KNOWN_WITHIN_S: Final = 5.0
KNOWN_POLL_S: Final = 0.02

# What asking for something else mends.
_WRONGLY_ASKED: Final = frozenset(
    {KafkaError.INVALID_PARTITIONS, KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.INVALID_CONFIG}
)

_Change = Callable[[AdminClient], "Future[None]"]


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
    brokers = cluster.brokers()
    if not _asked_of_each(brokers, lambda admin: _one(admin.create_topics([topic])), KafkaError.TOPIC_ALREADY_EXISTS):
        raise TopicExists(f"topic {name!r} exists")
    counts = {number: len(_known_topic(broker, name).partitions) for number, broker in brokers.items()}
    if len(set(counts.values())) > 1:  # made on some brokers long ago, and on the rest now
        said_by = ", ".join(f"{count} at broker {number}" for number, count in counts.items())
        raise ClusterRefused(f"brokers differ on the partitions of {name!r}: {said_by}; delete it and make it again")


def delete(cluster: Cluster, name: str) -> None:
    """Delete a topic at every broker that knows it. Raises `UnknownTopic`, `ClusterRefused`, `NoAnswer`."""
    check_name(name)
    brokers, nothing_to_do = cluster.brokers(), KafkaError.UNKNOWN_TOPIC_OR_PART
    if not _asked_of_each(brokers, lambda admin: _one(admin.delete_topics([name])), nothing_to_do):
        raise UnknownTopic(f"no topic {name!r} at {cluster.bootstrap}")


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


def _one(futures: Mapping[str, Future[None]]) -> Future[None]:
    (future,) = futures.values()
    return future


def _asked_of_each(brokers: Mapping[int, Cluster], change: _Change, nothing_to_do: int) -> bool:
    """Whether any broker took the change. Raises `ClusterRefused` where one neither did nor had nothing to do, and
    `WronglyAsked` where another change is needed and nothing is done yet."""
    took: list[int] = []
    for number, broker in brokers.items():
        admin = broker.admin()  # which must live until its answer is there
        try:
            change(admin).result(ANSWER_WITHIN_S)
        except KafkaException as error:
            code = error.args[0].code()
            if code in _WRONGLY_ASKED and not took:
                raise WronglyAsked(f"broker {number}: {said(error)}") from error
            if code != nothing_to_do:
                raise ClusterRefused(f"broker {number}{_so_far(took)}: {said(error)}") from error
        except TimeoutError:
            raise NoAnswer(f"broker {number}{_so_far(took)}: no answer within {ANSWER_WITHIN_S:.0f} s") from None
        else:
            took.append(number)
    return bool(took)


def _so_far(took: Sequence[int]) -> str:
    return f" (after it was done at {', '.join(map(str, took))})" if took else ""


def _known_topic(broker: Cluster, name: str) -> TopicMetadata:
    """The topic as one broker knows it, as soon as it does: where brokers tell each other, word takes a moment."""
    deadline = monotonic() + KNOWN_WITHIN_S
    while True:
        try:
            return broker.topic(name)
        except UnknownTopic:
            if monotonic() > deadline:
                raise ClusterRefused(
                    f"topic {name!r} was made, but {broker.bootstrap} does not know it after {KNOWN_WITHIN_S:.0f} s"
                ) from None
        sleep(KNOWN_POLL_S)

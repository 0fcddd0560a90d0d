"""What the name of an architecture means: where metadata is, and what a commit promises.

The words come from the run's own settings. A run without a manifest does not say them, and its names stay names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Settings = Mapping[str, Any]
WINDOWED_SCHEMA = 3  # the first schema of records that has windows, and `lookup` as reads that are shared
# What a row of the table of architectures does where the file says nothing.
_DEFAULTS = {
    "zookeeper": ("lookup", "zookeeper_each"),
    "dsbs": ("memory", "journal_copied"),
    "static": ("memory", "journal"),
}
_FORMER = {"every_commit": "zookeeper_each", "interval": "zookeeper_interval"}
_METADATA = {
    ("zookeeper", "lookup"): "a broker reads ZooKeeper for each request; requests share a read that is under way",
    ("zookeeper", "lookup_each"): "a broker reads ZooKeeper once for each request",
    ("zookeeper", "watch"): "brokers hold a copy in memory, and ZooKeeper tells them of changes",
    ("dsbs", "memory"): "brokers hold it in memory and tell each other of changes",
    ("static", "memory"): "fixed at the start, in memory",
    ("static", "lookup"): "in memory, by the path of requests that wait",
}
_OFFSETS = {
    "memory": "stays in memory",
    "journal": "is in the broker's journal",
    "journal_copied": "is in the broker's journal and copied to another broker",
    "zookeeper_each": "is a write to ZooKeeper",
    "zookeeper_interval": "stays in memory until the next write to ZooKeeper",
}
_FOREIGN = {
    "kafka-kraft": ("Apache Kafka, KRaft", "Apache Kafka with a quorum of its own"),
    "kafka-zookeeper": ("Apache Kafka, ZooKeeper", "Apache Kafka with ZooKeeper"),
    "external": ("external cluster", "a cluster that somebody else runs"),
}
_LABELS = {
    ("zookeeper", "lookup"): "ZooKeeper asked",
    ("zookeeper", "lookup_each"): "ZooKeeper asked each time",
    ("zookeeper", "watch"): "ZooKeeper watched",
    ("dsbs", "memory"): "DSBS",
    ("static", "memory"): "no coordination",
    ("static", "lookup"): "no coordination, but waiting",
}


@dataclass(frozen=True, slots=True)
class Name:
    """An architecture's name, a label for readers, and the two things that the name stands for."""

    name: str
    label: str
    metadata: str = ""
    commit: str = ""


def names(architectures: Sequence[str], manifest: Mapping[str, Any] | None) -> dict[str, Name]:
    """The name of each architecture in words. Labels differ: two that would be the same get their names added."""
    said = {one.get("name"): one for one in (manifest or {}).get("architectures") or () if isinstance(one, Mapping)}
    version = (manifest or {}).get("schema_version", WINDOWED_SCHEMA)
    each_time = isinstance(version, int) and version < WINDOWED_SCHEMA
    made = {name: _name(name, said.get(name) or {}, each_time=each_time) for name in architectures}
    return {
        key: _apart(one, [other for other in made.values() if other.label == one.label]) for key, one in made.items()
    }


def _apart(one: Name, alike: Sequence[Name]) -> Name:
    """The name with a label of its own among those that have its label: by its commit, or as the same once more."""
    firsts = {other.commit: other for other in reversed(alike)}
    first = firsts[one.commit]
    label = f"{one.label}, a commit {one.commit}" if len(firsts) > 1 else one.label
    if first == one:
        return replace(one, label=label)
    if not one.commit:
        return replace(one, label=f"{label} ({one.name})")
    return replace(one, label=f"{label}, again", metadata=f"the same as {first.name}, under another name")


def _name(name: str, settings: Settings, *, each_time: bool) -> Name:
    row = str(settings.get("row", ""))
    if row in _FOREIGN:
        return Name(name, *_FOREIGN[row])
    if row not in _DEFAULTS:
        return Name(name, name)
    metadata, offsets = (settings.get(key, default) for key, default in zip(_KEYS, _DEFAULTS[row], strict=True))
    if each_time and metadata == "lookup":
        metadata = "lookup_each"
    delay_us = settings.get("delay_us") or 0
    added = f"; {delay_us} µs are added to each coordination request" if delay_us else ""
    label = _LABELS.get((row, str(metadata)), name) + (f" + {delay_us} µs" if delay_us else "")
    return Name(name, label, _METADATA.get((row, str(metadata)), str(metadata)) + added, _commit(offsets, settings))


_KEYS = ("metadata", "offsets")


def _commit(offsets: object, settings: Settings) -> str:
    key = _FORMER.get(str(offsets), str(offsets))
    interval = settings.get("offsets_interval_ms")
    words = _OFFSETS.get(key, key)
    return f"{words}, every {interval:,} ms" if key == "zookeeper_interval" and isinstance(interval, int) else words

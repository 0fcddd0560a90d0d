"""Nodes to values: each of these refuses what it cannot take, with the place, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from workloads.errors import did_you_mean
from workloads.results import NAME, NAME_RULE
from workloads.spec import keys
from workloads.spec.settings import Rtt
from workloads.spec.yaml_source import Entry, Mapping, Node, Place, Scalar, Sequence, shown

NAMES_MAX = 200  # architectures, experiments or profiles of one file

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Given:
    """A value and where it stands; the place is None where the value is the default."""

    value: Any
    place: Place | None


def section(node: Node, label: str, known: Collection[str], required: Collection[str] = ()) -> dict[str, Entry]:
    """The entries of a mapping, all of them known, and all that are required there."""
    entries = mapping(node, label).entries
    for name, entry in entries.items():
        if name not in known:
            raise entry.key_place.error(f"unknown key {shown(name)} in {label}; {did_you_mean(name, known)}")
    for name in required:
        if name not in entries:
            raise node.place.error(f"{label} lacks the key {name!r}")
    return entries


def mapping(node: Node, label: str) -> Mapping:
    if not isinstance(node, Mapping):
        raise node.place.error(f"{label} must be a mapping of keys to values, not {_described(node)}")
    return node


def named(node: Node, label: str) -> dict[str, Entry]:
    """A mapping whose keys are names that the user chose; at least one."""
    entries = mapping(node, label).entries
    if not 1 <= len(entries) <= NAMES_MAX:
        raise node.place.error(f"{label} must have from 1 to {NAMES_MAX} entries; it has {len(entries):,}")
    for name, entry in entries.items():
        if not NAME.fullmatch(name):
            raise entry.key_place.error(f"{shown(name)} cannot name one of {label}: a name has {NAME_RULE}")
    return entries


def value(kind: keys.Kind[T], key: str, node: Node) -> T:
    """The one value of a key."""
    if not isinstance(node, Scalar):
        raise node.place.error(f"{key} must be one value, not {_described(node)}; allowed: {kind.allowed}")
    if not node.text:
        raise node.place.error(f"{key} has no value; allowed: {kind.allowed}")
    try:
        return kind.parse(node.text)
    except ValueError as error:
        raise node.place.error(f"{key} cannot be {shown(node.text)}: {error}") from error


def optional(table: dict[str, keys.Key], key: str, entries: dict[str, Entry]) -> Any:
    """The value of a key that may be absent; then its default, or None where it has none."""
    if key in entries:
        return value(table[key].kind, key, entries[key].value)
    default = table[key].default
    return None if default is None else table[key].kind.parse(default)


def axis(key: str, node: Node) -> tuple[Given, ...]:
    """The values of an axis: one, or each of a list, none of them twice."""
    found = [given for item in items(key, node) for given in _axis_values(key, item)]
    seen: set[Any] = set()
    for given in found:
        if given.value in seen:
            assert given.place is not None, "what is read has a place"
            raise given.place.error(f"{key} has the same value twice; each would be the same cell")
        seen.add(given.value)
    return tuple(found)


def distinct(kind: keys.Kind[T], key: str, node: Node) -> tuple[T, ...]:
    """One value, or each of a list, none of them twice."""
    found: list[T] = []
    for item in items(key, node):
        given = value(kind, key, item)
        if given in found:
            raise item.place.error(f"{key} has {given!r} twice")
        found.append(given)
    return tuple(found)


def default_axis(key: str) -> tuple[Given, ...]:
    default = keys.AXES[key].default
    return () if default is None else (Given(keys.AXES[key].kind.parse(default), None),)


def items(key: str, node: Node) -> tuple[Node, ...]:
    """The items of a list, or the one value that stands for a list of one."""
    if not isinstance(node, Sequence):
        return (node,)
    if not node.items:
        raise node.place.error(f"{key} is an empty list; name at least one value, or leave the key out")
    return node.items


def choices(key: str, node: Node, known: Collection[str]) -> tuple[str, ...]:
    """Names that stand elsewhere in the file, none of them twice."""
    found: list[str] = []
    for item in items(key, node):
        if not isinstance(item, Scalar):
            raise item.place.error(f"{key} must be a list of names, not {_described(item)}")
        if item.text not in known:
            raise item.place.error(f"{key} has the unknown name {shown(item.text)}; {did_you_mean(item.text, known)}")
        if item.text in found:
            raise item.place.error(f"{key} has {item.text!r} twice")
        found.append(item.text)
    return tuple(found)


def _axis_values(key: str, node: Node) -> Iterator[Given]:
    kind = keys.AXES[key].kind
    if isinstance(node, Mapping) and keys.takes_interval(key):
        interval = section(node, key, ("interval_ms",), required=("interval_ms",))["interval_ms"].value
        yield Given(keys.Policy("interval", value(keys.INTERVAL_MS, "interval_ms", interval)), node.place)
        return
    if isinstance(node, Mapping) and key == "rtt_ms":
        pairs = section(node, key, Rtt._fields)
        yield Given(Rtt(**{pair: value(keys.RTT_MS, pair, ms.value) for pair, ms in pairs.items()}), node.place)
        return
    found = value(kind, key, node)
    yield from (Given(each, node.place) for each in (found if isinstance(found, list) else [found]))


def _described(node: Node) -> str:
    if isinstance(node, Scalar):
        return shown(node.text) if node.text else "nothing"
    return "a list" if isinstance(node, Sequence) else "a mapping"

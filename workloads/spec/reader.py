"""The document to a Spec: section by section, then what no single key can show: combinations that cannot be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from workloads.spec import fields, keys
from workloads.spec.fields import Given
from workloads.spec.settings import Architecture, ClusterSettings, Effort, Hosts, Length, Pin, Point, WorkloadSettings
from workloads.spec.sizes import format_size
from workloads.spec.spec import Experiment, Profile, Spec, TrialSettings
from workloads.spec.yaml_source import Entry, Node, Place
from workloads.systems.architectures import COORDINATOR, OURS, ROWS, SYSTEM, Row, row_kind, row_named, row_of

VERSION = "1"
CELLS_MAX = 10_000  # of all experiments of a file; at a second a trial, that many take hours a try
SECTIONS = ("version", "cluster", "architectures", "workload", "experiments", "profiles", "trials", "pin", "hosts")
ROW_KEYS = (COORDINATOR, SYSTEM)
REQUIRED = ("version", "architectures", "experiments", "profiles")
# The results folder holds a link of this name to the newest run.
RESERVED_PROFILE = "latest"
PRIMARY_NAMES = 2  # of a pair

_Axes = Mapping[str, tuple[Given, ...]]


def read(document: Node, file: str) -> Spec:
    """Raises SpecError at the first thing that is wrong."""
    if version := fields.mapping(document, "the file").entries.get("version"):  # first: it says which keys there are
        fields.value(keys.word(VERSION), "version", version.value)
    entries = fields.section(document, "the file", SECTIONS, REQUIRED)
    base = _base(entries)
    trials = _trials(entries)
    architectures = {
        name: _architecture(name, entry)
        for name, entry in fields.named(entries["architectures"].value, "architectures").items()
    }
    experiments = _experiments(entries["experiments"].value, base)
    hosts = _hosts(entries)
    if hosts is None and any(p.cluster.topology == "hosts" for each in experiments.values() for p in each.points):
        raise entries["experiments"].key_place.error("topology: hosts needs a section 'hosts' that names them")
    profiles = tuple(
        _profile(name, entry, architectures, experiments, trials)
        for name, entry in fields.named(entries["profiles"].value, "profiles").items()
    )
    return Spec(
        file=file,
        architectures=tuple(architectures.values()),
        experiments=tuple(experiments.values()),
        profiles=profiles,
        trials=trials,
        pin=_pin(entries),
        hosts=hosts,
        cluster=_cluster({key: values[0].value for key, values in base.items() if values}),
    )


def _base(entries: Mapping[str, Entry]) -> dict[str, tuple[Given, ...]]:
    """The values of `cluster` and `workload`, and defaults for their absent keys: the start of every experiment."""
    base = {key: fields.default_axis(key) for key in keys.AXES}
    base |= {key: (Given(spec.kind.parse(str(spec.default)), None),) for key, spec in keys.PERMISSIONS.items()}
    if "cluster" in entries:
        base |= _axes(fields.section(entries["cluster"].value, "cluster", keys.CLUSTER))
    if "workload" in entries:
        known = keys.WORKLOAD | keys.PERMISSIONS
        base |= _axes(fields.section(entries["workload"].value, "workload", known))
    return base


def _axes(entries: Mapping[str, Entry]) -> dict[str, tuple[Given, ...]]:
    return {key: _permission(key, entry.value) or fields.axis(key, entry.value) for key, entry in entries.items()}


def _permission(key: str, node: Node) -> tuple[Given, ...]:
    if key not in keys.PERMISSIONS:
        return ()
    return (Given(fields.value(keys.PERMISSIONS[key].kind, key, node), node.place),)


def _trials(entries: Mapping[str, Entry]) -> TrialSettings:
    found = fields.section(entries["trials"].value, "trials", keys.TRIALS) if "trials" in entries else {}
    given = {key: fields.optional(keys.TRIALS, key, found) for key in keys.TRIALS}
    return TrialSettings(given["seed"], given["warmup"], given["timeout_s"])


def _pin(entries: Mapping[str, Entry]) -> Pin:
    found = fields.section(entries["pin"].value, "pin", keys.PIN) if "pin" in entries else {}
    return Pin(**{role: fields.distinct(keys.PIN[role].kind, role, entry.value) for role, entry in found.items()})


def _architecture(name: str, entry: Entry) -> Architecture:
    """One of the table's rows, or one outside the product, with the options that the row has."""
    label = f"architecture {name!r}"
    naming = [key for key in ROW_KEYS if key in fields.mapping(entry.value, label).entries]
    row = None
    if naming:
        reference = fields.value(
            row_kind(naming[0]), naming[0], fields.mapping(entry.value, label).entries[naming[0]].value
        )
        row = row_named(reference)
    others = [option for each in ROWS.values() for option in each.options]
    found = fields.section(entry.value, label, dict.fromkeys([*ROW_KEYS, *(row.options if row else ()), *others]))
    if row is None:
        raise entry.value.place.error(f"{label} lacks the key {COORDINATOR!r}, or {SYSTEM!r}")
    if len(naming) > 1:
        raise found[naming[1]].key_place.error(f"{label} has both {naming[0]!r} and {naming[1]!r}; one says what it is")
    return Architecture(name, reference, tuple(_options(label, row, entry.value.place, found)))


def _options(label: str, row: Row, place: Place, found: dict[str, Entry]) -> Iterator[tuple[str, str | int]]:
    """The value of each option that applies; refuses those that do not."""
    for key in found.keys() - row.options.keys() - set(ROW_KEYS):
        owners = ", ".join(f"the {each.named_by} {each.name}" for each in ROWS.values() if key in each.options)
        raise found[key].key_place.error(f"{label} cannot have {key!r}: only {owners} has that choice")
    value: dict[str, str | int] = {}
    for key, option in row.options.items():
        other, wanted = option.only_with or ("", "")
        if value.get(other, "") != wanted:
            if key in found:
                raise found[key].key_place.error(f"{label} cannot have {key!r} without {other}: {wanted}")
            continue
        if key not in found and option.key.default is None:
            needed_by = found[other].value.place if other in found else place
            raise needed_by.error(f"{label}{f' with {other}: {wanted}' if other else ''} lacks the key {key!r}")
        value[key] = fields.optional({key: option.key}, key, found)
    yield from value.items()


def _hosts(entries: Mapping[str, Entry]) -> Hosts | None:
    if "hosts" not in entries:
        return None
    found = fields.section(entries["hosts"].value, "hosts", keys.HOSTS, required=("brokers", "zookeeper"))
    return Hosts(
        fields.distinct(keys.HOSTS["brokers"].kind, "brokers", found["brokers"].value),
        fields.optional(keys.HOSTS, "zookeeper", found),
        fields.optional(keys.HOSTS, "ssh_config", found),
    )


def _experiments(node: Node, base: _Axes) -> dict[str, Experiment]:
    experiments: dict[str, Experiment] = {}
    cells = 0
    for name, entry in fields.named(node, "experiments").items():
        axes = _experiment_axes(name, entry, base)
        cells += math.prod(len(values) for values in axes.values())
        if cells > CELLS_MAX:
            raise entry.key_place.error(
                f"the experiments up to {name!r} have {cells:,} cells; at most {CELLS_MAX:,} are planned"
            )
        points = tuple(_points(axes, f"experiment {name!r}", entry.key_place))
        experiments[name] = Experiment(name, points)
    return experiments


def _experiment_axes(name: str, entry: Entry, base: _Axes) -> _Axes:
    known = keys.AXES | keys.PERMISSIONS
    label = f"experiment {name!r}"
    return {**base, **_axes(fields.section(entry.value, label, known, required=keys.EXPERIMENT))}


def _points(axes: _Axes, label: str, place: Place) -> Iterator[Point]:
    for combination in itertools.product(*axes.values()):
        given = dict(zip(axes, combination, strict=True))
        _refuse_impossible(given, label, place)
        yield _point({key: each.value for key, each in given.items()})


def _refuse_impossible(given: Mapping[str, Given], label: str, place: Place) -> None:
    """Raises SpecError, at the first key named that stands in the file, for settings that contradict each other."""
    value = {key: each.value for key, each in given.items()}
    request = value["batch_size"] * value["message_size"]
    blame: tuple[str, ...]
    if value["replication_factor"] > value["brokers"]:
        blame = ("replication_factor", "brokers")
        reason = f"replication_factor {value['replication_factor']} needs as many brokers, not {value['brokers']}"
    elif value["consumers"] > value["partitions"] and not value["idle_consumers"]:
        blame = ("consumers", "partitions")
        reason = (
            f"{value['consumers']} consumers on {value['partitions']} partitions leave some without one; "
            "add idle_consumers: true if that is meant"
        )
    elif value["mode"] == "load" and value["load"] is None:
        blame = ("mode",)
        reason = "mode load needs the key 'load', such as load: [30%, 60%, 90%]"
    elif value["mode"] != "load" and value["load"] is not None:
        blame = ("load", "mode")
        reason = "load is a share of the sustained rate, which mode: load alone has"
    elif value["mode"] == "load" and value["rate"] is not None:
        blame = ("rate", "mode")
        reason = "mode load finds its rates itself: leave rate away"
    elif any(value["rtt_ms"]) and value["topology"] != "namespaces":
        blame = ("rtt_ms", "topology")
        reason = "rtt_ms needs topology: namespaces; nothing else is delayed"
    elif request > keys.REQUEST_BYTES_MAX:
        blame = ("batch_size", "message_size")
        reason = (
            f"batch_size {value['batch_size']:,} x message_size {format_size(value['message_size'])} is a request of "
            f"{request:,} bytes; at most {keys.REQUEST_BYTES_MAX:,} are allowed"
        )
    else:
        return
    places = (given[key].place for key in blame)
    raise next((each for each in places if each is not None), place).error(f"{label}: {reason}")


def _cluster(value: Mapping[str, Any]) -> ClusterSettings:
    fsync = value["fsync"]
    return ClusterSettings(
        brokers=value["brokers"],
        partitions=value["partitions"],
        replication_factor=value["replication_factor"],
        acks=value["acks"],
        fsync=fsync.word,
        fsync_interval_ms=fsync.interval_ms,
        topology=value["topology"],
        rtt_ms=value["rtt_ms"],
        gather_ms=value["gather_ms"],
    )


def _point(value: Mapping[str, Any]) -> Point:
    commit = value["commit"]
    workload = WorkloadSettings(
        driver=value["driver"],
        producers=value["producers"],
        consumers=value["consumers"],
        commit=commit.word,
        commit_interval_ms=commit.interval_ms,
        fetch=value["fetch"],
        rate=value["rate"],
        in_flight=value["in_flight"],
        fetch_ahead=value["fetch_ahead"],
    )
    sizes = (value["message_size"], value["batch_size"])
    return Point(_cluster(value), workload, *sizes, value["mode"], value["load"])


def _profile(
    name: str,
    entry: Entry,
    architectures: Mapping[str, Architecture],
    experiments: Mapping[str, Experiment],
    trials: TrialSettings,
) -> Profile:
    if name == RESERVED_PROFILE:
        raise entry.key_place.error(f"a profile cannot be named {name!r}: results/{name} points to the newest run")
    label = f"profile {name!r}"
    known = ("experiments", "architectures", "primary", *keys.PROFILE)
    found = fields.section(entry.value, label, known, required=("experiments", "tries"))
    chosen = fields.choices("experiments", found["experiments"].value, experiments)
    length = _length(label, entry.key_place, found)
    _refuse_starved(label, found, length, [experiments[each] for each in chosen])
    on = _chosen_architectures(found, architectures)
    _refuse_unserved(label, found, [architectures[each] for each in on], [experiments[each] for each in chosen])
    profile = Profile(
        name=name,
        experiments=chosen,
        architectures=on,
        length=length,
        effort=_effort(found),
        primary=_primary(label, found, on),
        warmup=fields.optional(keys.PROFILE, "warmup", found) if "warmup" in found else trials.warmup,
        timeout_s=fields.optional(keys.PROFILE, "timeout_s", found) if "timeout_s" in found else trials.timeout_s,
    )
    _refuse_hopeless(label, found, profile)
    return profile


def _effort(found: dict[str, Entry]) -> Effort:
    given = {key: fields.optional(keys.PROFILE, key, found) for key in ("tries", "rounds", "budget_s", "precision")}
    return Effort(**given)


def _primary(label: str, found: Mapping[str, Entry], on: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The questions of a profile: each names an architecture and the one that it is compared against."""
    if "primary" not in found:
        return ()
    pairs: list[tuple[str, str]] = []
    for item in fields.items("primary", found["primary"].value):
        names = fields.choices("primary", item, on)
        if len(names) != PRIMARY_NAMES:
            raise item.place.error(f"{label}: primary is a list of pairs, such as [[dsbs, zookeeper]]")
        if (pair := (names[0], names[1])) in pairs:
            raise item.place.error(f"{label}: primary has the pair {pair[0]}, {pair[1]} twice")
        pairs.append(pair)
    return tuple(pairs)


def _chosen_architectures(found: Mapping[str, Entry], known: Mapping[str, Architecture]) -> tuple[str, ...]:
    if "architectures" not in found:
        # Another system joins a profile by name: it has to be fetched, or somebody has to run it.
        return tuple(name for name in known if row_of(known[name]).system == OURS) or tuple(known)
    return fields.choices("architectures", found["architectures"].value, known)


def _length(label: str, place: Place, found: dict[str, Entry]) -> Length:
    if "messages" in found and "duration_s" in found:
        raise found["duration_s"].key_place.error(f"{label} has both messages and duration_s; one says how long it is")
    if "messages" not in found and "duration_s" not in found:
        raise place.error(f"{label} lacks its length: messages or duration_s")
    if "messages" in found and "lead_s" in found:
        raise found["lead_s"].key_place.error(f"{label} has messages, so its windows are whole and have no lead_s")
    return Length(**{key: fields.optional(keys.PROFILE, key, found) for key in ("messages", "duration_s", "lead_s")})


def _refuse_starved(label: str, found: Mapping[str, Entry], length: Length, experiments: list[Experiment]) -> None:
    """Fewer messages than one full request of each producer would measure another batch size than the cell names."""
    if length.messages is None:
        return
    for experiment in experiments:
        for point in experiment.points:
            if length.messages < point.messages_least:
                raise found["messages"].value.place.error(
                    f"{label}: messages {length.messages:,} is less than one request of batch_size "
                    f"{point.batch_size:,} from each of {point.workload.producers} producers in {experiment.name!r}"
                )
            if point.mode == "load":
                raise found["messages"].value.place.error(
                    f"{label}: mode load needs duration_s, and {experiment.name!r} has that mode"
                )


def _refuse_unserved(
    label: str, found: Mapping[str, Entry], architectures: list[Architecture], experiments: list[Experiment]
) -> None:
    """The keys that a row cannot have at all."""
    for architecture, experiment in itertools.product(architectures, experiments):
        row = row_of(architecture)
        for point in experiment.points:
            for key, value, allowed in (
                ("driver", point.workload.driver, row.drivers),
                ("topology", point.cluster.topology, row.topologies),
            ):
                if value not in allowed:
                    place = found.get("architectures", found["experiments"]).value.place
                    raise place.error(
                        f"{label}: {architecture.name!r} cannot have {key}: {value}, which {experiment.name!r} asks for"
                    )


def _refuse_hopeless(label: str, found: Mapping[str, Entry], profile: Profile) -> None:
    """A split trial has two windows in each round, and cannot end before they do."""
    duration_s = profile.length.duration_s
    if duration_s is None:
        return
    least_s = 2 * profile.effort.rounds * (duration_s + profile.length.lead_s)
    if profile.timeout_s <= least_s:
        raise found["duration_s"].value.place.error(
            f"{label}: {2 * profile.effort.rounds} windows of duration_s {duration_s:g} do not fit into timeout_s "
            f"{profile.timeout_s:g}"
        )

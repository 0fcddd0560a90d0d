"""The plan of a run, in running order: cells, blocks, fleets and trials, decided before anything is started.

A block is one try of everything, on fresh clusters. A fleet is the clusters of all architectures for one set of cluster
settings, up side by side. A trial is one cell on one architecture in one block: one topic, and as many windows as the
run gives the cell. The same file, profile and seed give the same plan on every machine and every Python.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from workloads.errors import PlanError, did_you_mean
from workloads.spec.keys import EXPERIMENT
from workloads.spec.selection import Selection, select
from workloads.spec.settings import Architecture, ClusterSettings, Effort, Hosts, Length, Pin, Point
from workloads.spec.spec import Profile, Spec

TRIALS_MAX = 100_000  # of the blocks that run in any case
# With a budget there may be this many times the blocks that run in any case.
BLOCKS_FACTOR_MAX = 10
TRIAL_ID_CHARACTERS_MAX = 220  # an id is a file name, and file systems take 255 bytes, endings included

Kind = Literal["measured"]
MEASURED: Kind = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Point):
    """A cell, compared across architectures. Experiments that meet in the same settings share one cell."""

    id: str  # message_size=8,batch_size=20,mode=split, and every other axis that the profile sweeps
    experiments: tuple[str, ...]

    @property
    def sustained_key(self) -> str:
        """The same for cells that differ in their load alone: they are shares of one rate."""
        return ",".join(f"{key}={text}" for key, text in replace(self, load=None).as_axes().items() if key != "load")


@dataclass(frozen=True, slots=True)
class Trial:
    """One cell on one architecture in one block, on a topic of its own."""

    id: str
    cell: Cell
    architecture: Architecture
    block: int  # the try, from 1
    position: int  # place in the plan, from 1
    length: Length  # of each window

    @property
    def kind(self) -> Kind:
        return MEASURED


@dataclass(frozen=True, slots=True)
class Visit:
    """A cell in a block: its trials on all architectures, whose windows take turns."""

    cell: Cell
    trials: tuple[Trial, ...]  # in the architectures' order in the file


@dataclass(frozen=True, slots=True)
class Fleet:
    """The clusters of all architectures on one set of settings, from their start to their stop."""

    cluster: ClusterSettings
    architectures: tuple[Architecture, ...]
    visits: tuple[Visit, ...]


@dataclass(frozen=True, slots=True)
class Block:
    number: int  # from 1
    fleets: tuple[Fleet, ...]

    @property
    def trials(self) -> tuple[Trial, ...]:
        return tuple(trial for fleet in self.fleets for visit in fleet.visits for trial in visit.trials)


@dataclass(frozen=True, slots=True)
class Plan:
    """A resolved plan. `only` narrows architectures, cells and blocks; `spec_hash` is that of the whole profile."""

    spec_hash: str  # of all that changes what is measured; more tries, another budget or timeout do not
    name: str  # of the results folder, where the user names none
    profile: str
    seed: int
    length: Length  # of each window
    effort: Effort
    primary: tuple[tuple[str, str], ...]
    warmup: int  # untimed windows after each start of a cluster
    timeout_s: float  # of each trial
    architectures: tuple[Architecture, ...]  # in the file's order
    cells: tuple[Cell, ...]  # in the file's order
    pin: Pin
    hosts: Hosts | None  # where some cell is on them
    blocks: tuple[Block, ...]  # all that may be needed

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial in running order."""
        return tuple(trial for block in self.blocks for trial in block.trials)

    def is_sure(self, block: Block) -> bool:
        """Whether a block runs in any case; others only where the budget allows them and the ratios need them."""
        return block.number <= self.effort.tries

    @property
    def sure_trials(self) -> tuple[Trial, ...]:
        return tuple(trial for block in self.blocks if self.is_sure(block) for trial in block.trials)

    def as_json(self) -> dict[str, Any]:
        """The resolved plan as data, for the manifest: all but the order of the trials."""
        return {
            "spec_hash": self.spec_hash,
            "name": self.name,
            "profile": self.profile,
            "seed": self.seed,
            "length": asdict(self.length),
            "effort": asdict(self.effort),
            "primary": [list(pair) for pair in self.primary],
            "warmup": self.warmup,
            "timeout_s": self.timeout_s,
            "pin": asdict(self.pin),
            "hosts": self.hosts and asdict(self.hosts),
            "architectures": [each.as_json() for each in self.architectures],
            "cells": [_described(cell) for cell in self.cells],
        }


def resolve(
    spec: Spec, profile: str, only: Sequence[str] = (), messages: int | None = None, tries: int | None = None
) -> Plan:
    """The plan of a profile; raises PlanError when the profile or a filter is unknown, or fits nothing.

    `only` keeps the trials that fit every `key=value` (values of one key are alternatives); the ids and the order of
    what is kept do not change. `messages` takes the place of the profile's length, `tries` of its tries and budget.
    """
    chosen = _profile(spec, profile)
    if tries is not None:
        chosen = replace(chosen, effort=replace(chosen.effort, tries=tries, budget_s=None))
    length = chosen.length if messages is None else Length(messages, None)
    cells = _cells(spec, chosen)
    _refuse_starved(cells, length)
    architectures = tuple(each for each in spec.architectures if each.name in chosen.architectures)
    effort = chosen.effort
    if len(cells) * len(architectures) * effort.tries > TRIALS_MAX:
        raise PlanError(f"profile {profile!r} has more than {TRIALS_MAX:,} trials; lower its tries or its lists")
    selection = select(only, cells, architectures, effort.tries)
    whole = effort.budget_s is not None and len(selection.tries) == effort.tries
    tries_max = effort.tries * (BLOCKS_FACTOR_MAX if whole else 1)
    layout = _Layout(spec.trials.seed, length, architectures, effort.tries)
    plan = Plan(
        spec_hash=_hash(spec, chosen, length, architectures, cells),
        name=_name(spec.file, profile),
        profile=profile,
        seed=spec.trials.seed,
        length=length,
        effort=effort,
        primary=_asked(chosen.primary, selection.architectures),
        warmup=chosen.warmup,
        timeout_s=chosen.timeout_s,
        architectures=selection.architectures,
        cells=selection.cells,
        pin=spec.pin,
        hosts=_hosts(spec, cells),
        blocks=tuple(layout.blocks(cells, tries_max, selection)),
    )
    _refuse_long_ids(plan)
    return plan


def _profile(spec: Spec, name: str) -> Profile:
    for profile in spec.profiles:
        if profile.name == name:
            return profile
    raise PlanError(f"{spec.file} has no profile {name!r}; {did_you_mean(name, [each.name for each in spec.profiles])}")


def _asked(primary: Sequence[tuple[str, str]], kept: Sequence[Architecture]) -> tuple[tuple[str, str], ...]:
    """The questions that the selected architectures can answer."""
    names = {each.name for each in kept}
    return tuple(pair for pair in primary if names.issuperset(pair))


def _hosts(spec: Spec, cells: Sequence[Cell]) -> Hosts | None:
    """Those of the file, where anything runs on them."""
    return spec.hosts if any(each.cluster.topology == "hosts" for each in cells) else None


def _name(file: str, profile: str) -> str:
    """Plans of two files do not meet in one folder by chance."""
    stem = Path(file).stem
    return profile if stem == "experiments" else f"{stem}-{profile}"


def _cells(spec: Spec, profile: Profile) -> tuple[Cell, ...]:
    """The points of the profile's experiments, each once, with an id that tells them apart."""
    sharing: dict[Point, list[str]] = {}
    for experiment in spec.experiments:
        if experiment.name in profile.experiments:
            for point in experiment.points:
                sharing.setdefault(point, []).append(experiment.name)
    axes = [point.as_axes() for point in sharing]
    swept = {key for key in axes[0] if key in EXPERIMENT or len({each[key] for each in axes}) > 1}
    return tuple(_cell(point, _cell_id(point, swept), tuple(experiments)) for point, experiments in sharing.items())


def _cell_id(point: Point, swept: set[str]) -> str:
    """A load is named where there is one; the cells of other modes have none."""
    named = swept - {"load"} | ({"load"} if point.load is not None else set())
    return ",".join(f"{key}={text}" for key, text in point.as_axes().items() if key in named)


def _cell(point: Point, cell_id: str, experiments: tuple[str, ...]) -> Cell:
    settings = {field.name: getattr(point, field.name) for field in fields(point)}
    return Cell(id=cell_id, experiments=experiments, **settings)


def _refuse_starved(cells: Sequence[Cell], length: Length) -> None:
    """The file's own lengths were checked with it; this is for a length from the command line."""
    for cell in cells:
        if length.messages is not None and length.messages < cell.messages_least:
            raise PlanError(
                f"{length.messages:,} messages are less than one request of each producer in {cell.id} "
                f"({cell.messages_least:,})"
            )
        if length.messages is not None and cell.mode == "load":
            raise PlanError(f"{cell.id} is measured by time: mode load takes no number of messages")


def _refuse_long_ids(plan: Plan) -> None:
    for trial in plan.trials:
        if len(trial.id) + trial.id.count("/") > TRIAL_ID_CHARACTERS_MAX:  # a slash becomes two characters
            raise PlanError(
                f"the id of a trial would be longer than {TRIAL_ID_CHARACTERS_MAX} characters, too long for a file "
                f"name; sweep fewer axes in one profile ({trial.id})"
            )


def _described(cell: Cell) -> dict[str, Any]:
    return {"id": cell.id, "experiments": list(cell.experiments), **cell.as_axes()}


def _hash(
    spec: Spec, profile: Profile, length: Length, architectures: Sequence[Architecture], cells: Sequence[Cell]
) -> str:
    """Hash of all that changes what is measured. Tries, budget and timeout are left out: a run may be lengthened."""
    measured = {
        "seed": spec.trials.seed,
        "warmup": profile.warmup,
        "length": asdict(length),
        "rounds": profile.effort.rounds,
        "architectures": sorted((each.as_json() for each in architectures), key=lambda each: str(each["name"])),
        "cells": sorted(
            ({**_described(cell), "experiments": sorted(cell.experiments)} for cell in cells),
            key=lambda each: str(each["id"]),
        ),
    }
    if spec.pin != Pin():
        measured["pin"] = asdict(spec.pin)
    if hosts := _hosts(spec, cells):
        measured["hosts"] = asdict(hosts)
    return hashlib.sha256(json.dumps(measured, sort_keys=True).encode()).hexdigest()[:16]


class _Layout:
    """Puts trials in their order: the cells of a block in one that is drawn from the seed."""

    def __init__(self, seed: int, length: Length, architectures: tuple[Architecture, ...], sure: int) -> None:
        self._seed = seed
        self._sure = sure  # blocks that run in any case
        self._length = length
        self._architectures = architectures
        self._positions = itertools.count(1)

    def blocks(self, cells: Sequence[Cell], tries: int, selection: Selection) -> Iterator[Block]:
        """Those of `selection`, and those behind the sure ones; trials have the places that they have among all."""
        for number in range(1, tries + 1):
            fleets = [self._fleet(number, group, selection) for group in self._by_cluster(number, cells)]
            if number in selection.tries or number > self._sure:
                yield Block(number, tuple(fleet for fleet in fleets if fleet.visits))

    def _by_cluster(self, block: int, cells: Sequence[Cell]) -> list[list[Cell]]:
        by_cluster: dict[ClusterSettings, list[Cell]] = {}
        for cell in self._drawn(block, cells):
            by_cluster.setdefault(cell.cluster, []).append(cell)
        return list(by_cluster.values())

    def _drawn(self, block: int, cells: Sequence[Cell]) -> list[Cell]:
        """A random order by the digest of each id: the same on every Python, and in any part of the cells."""
        return sorted(cells, key=lambda cell: hashlib.sha256(f"{self._seed}/{block}/{cell.id}".encode()).digest())

    def _fleet(self, block: int, cells: Sequence[Cell], selection: Selection) -> Fleet:
        visits = [Visit(cell, tuple(self._trial(block, cell, each) for each in self._architectures)) for cell in cells]
        kept = [
            replace(visit, trials=tuple(each for each in visit.trials if each.architecture in selection.architectures))
            for visit in visits
            if visit.cell in selection.cells
        ]
        return Fleet(cells[0].cluster, selection.architectures, tuple(kept))

    def _trial(self, block: int, cell: Cell, architecture: Architecture) -> Trial:
        trial_id = f"{cell.id}/{architecture.name}/{block}"
        return Trial(trial_id, cell, architecture, block, next(self._positions), self._length)

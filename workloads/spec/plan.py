"""The plan of a run, in running order: cells, trials, legs and blocks, decided before anything is started.

A block is one try of everything. A leg is the life of one cluster: one architecture on one set of cluster settings.
The same file, profile and seed give the same plan on every machine and every Python.
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
from workloads.spec.selection import select
from workloads.spec.settings import Architecture, ClusterSettings, Hosts, Length, Pin, Point, Until
from workloads.spec.spec import Profile, Spec

TRIALS_MAX = 100_000  # measured ones
TRIAL_ID_CHARACTERS_MAX = 220  # an id is a file name, and file systems take 255 bytes, endings included
# A warm-up is long enough for a rate that is not made of its own start.
WARMUP_S = 0.5
# Seconds of a warm-up that finds a trial's number of messages; in streaming both ends need a while to get up to speed.
SIZING_S = {"split": 0.25, "streaming": 0.4}
# Where a profile counts messages, its trials may be too short or too long to find drift with.
CALIBRATION_S = 1.0
CALIBRATION_ARCHITECTURE = Architecture("static", "static")
CALIBRATION_CELL = "calibration"

Kind = Literal["measured", "calibration", "warmup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Point):
    """A cell, compared across architectures. Experiments that meet in the same settings share one cell."""

    id: str  # message_size=8,batch_size=20,mode=split, and every other axis that the profile sweeps
    experiments: tuple[str, ...]  # empty for the calibration cell


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one cell on one architecture, on a topic of its own.

    `length` says how long. `messages` is exact. `duration_s` of a warm-up (which always has it) is a limit: send until
    it has passed, and never fewer than `messages_min`. `duration_s` of a measured or calibration trial is an aim: the
    warm-up whose `sizes` is that length, of the same cell and architecture, came before it, and its rate gives N. The
    same N serves the later blocks, so that blocks compare.
    """

    id: str
    kind: Kind
    cell: Cell
    architecture: Architecture
    block: int  # the try, from 1
    position: int  # place in the plan, from 1
    length: Length
    sizes: Length | None = None  # of a warm-up that sets N: the length of the trials that it sets N for


@dataclass(frozen=True, slots=True)
class Leg:
    """The trials of one cluster, from its start to its stop."""

    architecture: Architecture
    cluster: ClusterSettings
    trials: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One try: opened and closed by a calibration leg."""

    number: int  # from 1
    legs: tuple[Leg, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """A resolved plan. `only` narrows architectures, cells and blocks; `spec_hash` is that of the whole profile."""

    spec_hash: str  # of all that changes what is measured; more tries or another timeout do not
    name: str  # of the results folder, where the user names none
    profile: str
    seed: int
    length: Length  # of the measured trials
    timeout_s: float  # of each trial
    architectures: tuple[Architecture, ...]  # in the file's order
    cells: tuple[Cell, ...]  # in the file's order
    pin: Pin
    hosts: Hosts | None  # where some cell is on them
    until: Until | None  # whether blocks behind the first `tries` are needed at all
    tries: int
    blocks: tuple[Block, ...]  # all that may be needed

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every trial in running order."""
        return tuple(trial for block in self.blocks for leg in block.legs for trial in leg.trials)

    def is_sure(self, trial: Trial) -> bool:
        """Whether a trial runs in any case; others only where `until` asks for its block."""
        return trial.block <= self.tries or self.until is None

    def as_json(self) -> dict[str, Any]:
        """The resolved plan as data, for the manifest: all but the order of the trials."""
        return {
            "spec_hash": self.spec_hash,
            "name": self.name,
            "profile": self.profile,
            "seed": self.seed,
            "length": asdict(self.length),
            "timeout_s": self.timeout_s,
            "tries": [block.number for block in self.blocks],
            "until": self.until and asdict(self.until),
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
    what is kept do not change. `messages` takes the place of the profile's length, `tries` of its tries and `until`.
    """
    chosen = _profile(spec, profile)
    if tries is not None:
        chosen = replace(chosen, tries=tries, until=None)
    length = chosen.length if messages is None else Length(messages, None, chosen.length.messages_min)
    cells = _cells(spec, chosen)
    _refuse_starved(cells, length)
    architectures = tuple(each for each in spec.architectures if each.name in chosen.architectures)
    tries_max = chosen.tries if chosen.until is None else chosen.until.tries_max
    if len(cells) * len(architectures) * tries_max > TRIALS_MAX:
        raise PlanError(f"profile {profile!r} has more than {TRIALS_MAX:,} trials; lower its tries or its lists")
    layout = _Layout(spec, chosen.warmup, length, architectures, cells)
    selection = select(only, cells, architectures, tries_max)
    plan = Plan(
        spec_hash=_hash(spec, chosen.warmup, length, architectures, cells),
        name=_name(spec.file, profile),
        profile=profile,
        seed=spec.trials.seed,
        length=length,
        timeout_s=chosen.timeout_s,
        architectures=selection.architectures,
        cells=selection.cells,
        pin=spec.pin,
        hosts=_hosts(spec, cells),
        until=chosen.until,
        tries=chosen.tries,
        blocks=tuple(layout.blocks(selection.tries, selection.architectures, selection.cells)),
    )
    _refuse_long_ids(plan)
    return plan


def _profile(spec: Spec, name: str) -> Profile:
    for profile in spec.profiles:
        if profile.name == name:
            return profile
    raise PlanError(f"{spec.file} has no profile {name!r}; {did_you_mean(name, [each.name for each in spec.profiles])}")


def _hosts(spec: Spec, cells: Sequence[Cell]) -> Hosts | None:
    """Those of the file, where anything runs on them."""
    return spec.hosts if any(each.cluster.topology == "hosts" for each in (*cells, spec.calibration)) else None


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
    named = [key for key in axes[0] if key in EXPERIMENT or len({each[key] for each in axes}) > 1]
    return tuple(
        _cell(point, ",".join(f"{key}={text[key]}" for key in named), tuple(experiments))
        for (point, experiments), text in zip(sharing.items(), axes, strict=True)
    )


def _cell(point: Point, cell_id: str, experiments: tuple[str, ...] = ()) -> Cell:
    settings = {field.name: getattr(point, field.name) for field in fields(point)}
    return Cell(id=cell_id, experiments=experiments, **settings)


def _refuse_starved(cells: Sequence[Cell], length: Length) -> None:
    """The file's own lengths were checked with it; this is for a length from the command line."""
    for cell in cells:
        if length.messages_least < cell.messages_least:
            raise PlanError(
                f"{length.messages_least:,} messages are less than one request of each producer in {cell.id} "
                f"({cell.messages_least:,})"
            )


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
    spec: Spec, warmups: int, length: Length, architectures: Sequence[Architecture], cells: Sequence[Cell]
) -> str:
    """Hash of all that changes what is measured. Tries and timeout are left out: a run may be lengthened."""
    measured = {
        "seed": spec.trials.seed,
        "warmup": warmups,
        "length": asdict(length),
        "calibration": spec.calibration.as_axes(),
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


def _sizing_length(cell: Cell, sizes: Length) -> Length:
    assert sizes.duration_s is not None, "a trial of so many messages needs no sizing"
    return Length(None, min(SIZING_S[cell.mode], sizes.duration_s / 2), cell.messages_least)


class _Layout:
    """Puts trials in their order.

    Within a block all architectures meet the cells in one order, drawn from the seed, and from block to block the
    architectures take turns at being first: drift of the machine then hits all of them alike.
    """

    def __init__(
        self,
        spec: Spec,
        warmups: int,
        length: Length,
        architectures: tuple[Architecture, ...],
        cells: tuple[Cell, ...],
    ) -> None:
        self._seed = spec.trials.seed
        self._warmups = warmups
        self._length = length
        self._architectures = architectures
        self._calibration = _cell(spec.calibration, CALIBRATION_CELL)
        self._positions = itertools.count(1)

    def blocks(self, tries: Sequence[int], kept: Sequence[Architecture], cells: Sequence[Cell]) -> Iterator[Block]:
        for number in tries:
            first = number == tries[0]
            legs = [self._calibration_leg(number, "open", sizing=first)]
            for architecture in self._rotated(number):
                if architecture in kept:
                    legs += self._legs(number, architecture, cells, sizing=first and self._length.messages is None)
            legs.append(self._calibration_leg(number, "close", sizing=False))
            yield Block(number, tuple(legs))

    def _rotated(self, block: int) -> tuple[Architecture, ...]:
        turn = (block - 1) % len(self._architectures)
        return self._architectures[turn:] + self._architectures[:turn]

    def _drawn(self, block: int, cells: Sequence[Cell]) -> list[Cell]:
        """A random order by the digest of each id: the same on every Python, and in any part of the cells."""
        return sorted(cells, key=lambda cell: hashlib.sha256(f"{self._seed}/{block}/{cell.id}".encode()).digest())

    def _legs(self, block: int, architecture: Architecture, cells: Sequence[Cell], *, sizing: bool) -> Iterator[Leg]:
        by_cluster: dict[ClusterSettings, list[Cell]] = {}
        for cell in self._drawn(block, cells):
            by_cluster.setdefault(cell.cluster, []).append(cell)
        for cluster, group in by_cluster.items():
            trials = list(self._warm(block, architecture, group, self._length if sizing else None))
            for cell in group:
                trial_id = f"{cell.id}/{architecture.name}/{block}"
                trials.append(self._trial(trial_id, "measured", cell, architecture, block, self._length))
            yield Leg(architecture, cluster, tuple(trials))

    def _calibration_leg(self, block: int, end: str, *, sizing: bool) -> Leg:
        cell, static = self._calibration, CALIBRATION_ARCHITECTURE
        least = max(self._length.messages_min, cell.messages_least)
        length = Length(None, self._length.duration_s or CALIBRATION_S, least)
        trials = list(self._warm(block, static, [cell], length if sizing else None, suffix=f"/{end}"))
        trials.append(self._trial(f"{CALIBRATION_CELL}/{block}/{end}", "calibration", cell, static, block, length))
        return Leg(static, cell.cluster, tuple(trials))

    def _warm(
        self, block: int, architecture: Architecture, cells: Sequence[Cell], sizes: Length | None, suffix: str = ""
    ) -> Iterator[Trial]:
        """The warm-ups on a cluster that has just started; all run before the first measured trial, so that every block
        has the same kind of trials before its measured ones."""
        first = cells[0]
        for count in range(1, self._warmups + 1):
            trial_id = f"warmup/{first.id}/{architecture.name}/{block}{suffix}/{count}"
            yield self._trial(trial_id, "warmup", first, architecture, block, self._warmup_length(first))
        if sizes is None:
            return
        for cell in cells:
            trial_id = f"sizing/{cell.id}/{architecture.name}"
            yield self._trial(trial_id, "warmup", cell, architecture, block, _sizing_length(cell, sizes), sizes)

    def _warmup_length(self, cell: Cell) -> Length:
        return Length(None, min(WARMUP_S, self._length.duration_s or WARMUP_S), cell.messages_least)

    def _trial(
        self,
        trial_id: str,
        kind: Kind,
        cell: Cell,
        architecture: Architecture,
        block: int,
        length: Length,
        sizes: Length | None = None,
    ) -> Trial:
        return Trial(trial_id, kind, cell, architecture, block, next(self._positions), length, sizes)

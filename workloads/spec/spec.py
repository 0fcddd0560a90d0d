"""experiments.yaml as frozen values: read, checked whole, and refused with the place of the fault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workloads.spec.settings import Architecture, ClusterSettings, Effort, Hosts, Length, Pin, Point


@dataclass(frozen=True, slots=True)
class Experiment:
    name: str
    points: tuple[Point, ...]  # the product of its lists, in the file's order


@dataclass(frozen=True, slots=True)
class Profile:
    name: str
    experiments: tuple[str, ...]
    architectures: tuple[str, ...]
    length: Length
    effort: Effort
    primary: tuple[tuple[str, str], ...]  # the questions: one architecture against another; empty for the usual ones
    warmup: int  # untimed windows after each start of a cluster
    timeout_s: float  # of each trial


@dataclass(frozen=True, slots=True)
class TrialSettings:
    seed: int
    warmup: int  # untimed windows after each start of a cluster
    timeout_s: float


@dataclass(frozen=True, slots=True)
class Spec:
    """The whole file; each tuple is in the file's order and never empty."""

    file: str
    architectures: tuple[Architecture, ...]
    experiments: tuple[Experiment, ...]
    profiles: tuple[Profile, ...]
    trials: TrialSettings
    pin: Pin
    hosts: Hosts | None
    cluster: ClusterSettings  # the first value of each key of that section, as a playground has it


def load(path: Path) -> Spec:
    """Read and check the whole file; raises SpecError with line, column, value and what is allowed."""
    # Here, so that only who reads a file pays for the YAML library.
    from workloads.spec.reader import read
    from workloads.spec.yaml_source import read_file

    return read(read_file(path), str(path))

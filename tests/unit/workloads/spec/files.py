"""Small experiment files for tests: a whole one, and ways to change a piece of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.errors import SpecError
from workloads.spec.reader import read
from workloads.spec.spec import Spec
from workloads.spec.yaml_source import read_text

FILE = "experiments.yaml"

CLUSTER = "cluster: {brokers: 3, partitions: 3}"
ARCHITECTURES = """architectures:
  zookeeper: {coordinator: zookeeper, metadata: lookup, offsets: zookeeper_each}
  zookeeper-watch: {coordinator: zookeeper, metadata: watch, offsets: zookeeper_interval, offsets_interval_ms: 1000}
  dsbs: {coordinator: dsbs}
  static: {coordinator: static}"""
WORKLOAD = "workload: {driver: grpc}"
EXPERIMENTS = """experiments:
  message-size: {message_size: [8B, 32B], batch_size: 20, mode: [split, streaming]}
  batch-size: {message_size: 32B, batch_size: [1, 20], mode: [split, streaming]}"""
PROFILES = """profiles:
  steady: {experiments: [message-size, batch-size], duration_s: 1, tries: 3}
  paper: {experiments: [message-size, batch-size], messages: 30000, tries: 4}"""
TRIALS = "trials: {order: interleaved, seed: 2017, warmup: 1, timeout_s: 120}"


def text(
    *,
    cluster: str = CLUSTER,
    architectures: str = ARCHITECTURES,
    workload: str = WORKLOAD,
    experiments: str = EXPERIMENTS,
    profiles: str = PROFILES,
    trials: str = TRIALS,
) -> str:
    return "\n".join(["version: 1", cluster, architectures, workload, experiments, profiles, trials]) + "\n"


def experiment(extra: str = "", *, size: str = "32B", batch: str = "20", mode: str = "split") -> str:
    """A file with one experiment, `extra` among its keys, and one profile for it."""
    more = f", {extra}" if extra else ""
    return text(
        experiments=f"experiments: {{one: {{message_size: {size}, batch_size: {batch}, mode: {mode}{more}}}}}",
        profiles="profiles: {steady: {experiments: one, messages: 1000000000, tries: 1}}",
    )


def spec(source: str) -> Spec:
    return read(read_text(source, FILE), FILE)


def refusal(source: str) -> SpecError:
    """The error that a file meets; its text is one line and starts with the place, whatever the file holds."""
    with pytest.raises(SpecError) as caught:
        spec(source)
    error = caught.value
    assert "\n" not in str(error)
    assert str(error).startswith(f"{FILE}:{error.line}:{error.column}: ")
    return error


def place_of(source: str, piece: str) -> tuple[int, int]:
    """Line and column, from 1, of the one place where `piece` stands."""
    assert source.count(piece) == 1
    before = source[: source.index(piece)].split("\n")
    return len(before), len(before[-1]) + 1


def written(folder: Path, content: bytes) -> Path:
    path = folder / FILE
    path.write_bytes(content)
    return path

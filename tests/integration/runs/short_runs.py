"""Runs for tests: tiny, real, in this process or as a command of their own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.unit.workloads.run.plans import plan
from tests.unit.workloads.spec.files import text
from workloads.clients.process import Client
from workloads.faults.script import Script
from workloads.results import TRIALS, ResultsFolder
from workloads.run.progress import PlainProgress
from workloads.run.runner import Run, Summary
from workloads.spec.plan import Plan, Visit
from workloads.trial.clients import TrialClients, Work
from workloads.trial.record import TrialRecord
from workloads.trial.trial import NO_FAULTS

# Two quick cells and two that take about a second each way, so that something can happen in them.
EXPERIMENTS = "experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming], rate: [max, 200]}}"
PROFILE = "{experiments: one, messages: 200, tries: 1}"
SETTINGS = "trials: {warmup: 0, seed: 1, timeout_s: 30}"
STATIC = "architectures: {static: {coordinator: static}}"

PLAN = plan(experiments=EXPERIMENTS, profile=PROFILE, trials=SETTINGS)
ONE_TRIAL = plan(experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: split}}", profile=PROFILE)
QUICK = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming]}}", profile=PROFILE
)


class Hooks(PlainProgress):
    """Progress that lets a test do something when a cell begins on all architectures."""

    def __init__(self, at_begin: Callable[[Visit], None] = lambda _: None) -> None:
        self._at_begin = at_begin
        self.ended: list[tuple[str, TrialRecord]] = []

    def visit_begins(self, visit: Visit) -> None:
        self._at_begin(visit)

    def trial_ends(self, record: TrialRecord) -> None:
        self.ended.append((record.trial.id, record))
        super().trial_ends(record)


def run_here(
    folder: Path, of: Plan = PLAN, hooks: Hooks | None = None, script: Script = NO_FAULTS, *, history: bool = False
) -> Summary:
    """Run a plan in this process, to its end."""
    return asyncio.run(Run(of, ResultsFolder(folder), hooks or Hooks(), script, history=history).run())


@contextmanager
def at_work(act: Callable[[TrialRecord], None]) -> Iterator[None]:
    """Do something each time that clients are all at work: in a window, in a warm-up, or filling a topic."""
    real = TrialClients.begin

    async def begins(clients: TrialClients, who: Sequence[Client], targets: Mapping[int, int] | None = None) -> Work:
        work = await real(clients, who, targets)
        act(clients._record)
        return work

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrialClients, "begin", begins)
        yield


def ids(of: Plan = PLAN) -> set[str]:
    return {trial.id for trial in of.sure_trials}


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    """Trial id -> its row."""
    return {row["trial_id"]: row for row in pq.read_table(folder / TRIALS).to_pylist()}


def spec_file(folder: Path, **pieces: str) -> Path:
    """A spec for the command line; the plan is PLAN's unless `pieces` say otherwise."""
    parts = {"experiments": EXPERIMENTS, "profiles": f"profiles: {{steady: {PROFILE}}}", "trials": SETTINGS}
    path = folder / "experiments.yaml"
    path.write_text(text(**{"architectures": STATIC, **parts, **pieces}))
    return path


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "workloads", *map(str, arguments)]


def run_command(spec: Path, out: Path) -> list[str]:
    return command("run", spec, "--out", out, "--no-analysis")


def started(words: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """A command whose lines can be read while it runs."""
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
        env=None if environment is None else {**os.environ, **environment},
    )  # fmt: skip

"""One cluster of `static` with its clients, on which a test leads trials step by step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.unit.workloads.run.plans import plan
from workloads.faults.script import Script
from workloads.run.arm import Arm
from workloads.spec.plan import Plan
from workloads.trial.trial import NO_FAULTS, TrialRun

PLAN: Final = plan(
    experiments="experiments: {one: {message_size: 32B, batch_size: 10, mode: [split, streaming], producers: 2}}",
    profile="{experiments: one, duration_s: 0.1, lead_s: 0.05, tries: 1}",
)


@asynccontextmanager
async def running(folder: Path, of: Plan = PLAN) -> AsyncIterator[Arm]:
    arm = arm_of(folder, of)
    await arm.start()
    try:
        yield arm
    finally:
        await arm.stop()


def arm_of(folder: Path, of: Plan = PLAN) -> Arm:
    fleet = of.blocks[0].fleets[0]
    return Arm(fleet.architectures[0], fleet, of, folder, "block-1-static-1", list)


def trial_on(arm: Arm, mode: str = "split", of: Plan = PLAN, script: Script = NO_FAULTS) -> TrialRun:
    """Begin the trial of a mode."""
    (trial,) = [each for each in of.trials if each.cell.mode == mode]
    return arm.trial(trial, script, history=False)

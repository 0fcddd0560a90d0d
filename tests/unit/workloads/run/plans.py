"""Plans for tests: small, resolved from a spec's text as a user's would be."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.workloads.spec.files import spec, text
from workloads.spec.plan import Plan, resolve

EXPERIMENTS = "experiments: {one: {message_size: 32B, batch_size: [10, 20], mode: [split, streaming]}}"


def plan(
    *,
    architectures: str = "architectures: {static: {coordinator: static}}",
    experiments: str = EXPERIMENTS,
    profile: str = "{experiments: one, messages: 300, tries: 1}",
    trials: str = "trials: {warmup: 0, seed: 1, timeout_s: 60}",
    calibrated: bool = False,
) -> Plan:
    """The plan of a profile; without calibration, which costs the lives of two clusters, unless it is asked for."""
    source = text(
        architectures=architectures, experiments=experiments, profiles=f"profiles: {{steady: {profile}}}", trials=trials
    )
    found = resolve(spec(source), "steady")
    return found if calibrated else without_calibration(found)


def without_calibration(found: Plan) -> Plan:
    """A plan without the legs that open and close each block."""
    blocks = []
    for block in found.blocks:
        legs = tuple(leg for leg in block.legs if leg.trials[-1].kind != "calibration")
        blocks.append(replace(block, legs=legs))
    return replace(found, blocks=tuple(blocks))

"""Plans for tests: small, resolved from a spec's text as a user's would be."""

from __future__ import annotations

from tests.unit.workloads.spec.files import spec, text
from workloads.spec.plan import Plan, resolve

EXPERIMENTS = "experiments: {one: {message_size: 32B, batch_size: [10, 20], mode: [split, streaming]}}"


def plan(
    *,
    architectures: str = "architectures: {static: {coordinator: static}}",
    experiments: str = EXPERIMENTS,
    profile: str = "{experiments: one, messages: 300, tries: 1}",
    trials: str = "trials: {warmup: 0, seed: 1, timeout_s: 60}",
) -> Plan:
    """The plan of a profile; on one architecture, without warm-ups, unless more is asked for."""
    source = text(
        architectures=architectures, experiments=experiments, profiles=f"profiles: {{steady: {profile}}}", trials=trials
    )
    return resolve(spec(source), "steady")
